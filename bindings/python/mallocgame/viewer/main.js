// Puts the page together.

function showHeading() {
  const [plan] = PLANS;
  byId('title').textContent = PROGRAM.name;
  const latency = plan.report.latency_ps;
  const summary = byId('summary');
  const who = PLANS.length > 1 ? `${plan.label} against ${PLANS[1].label}` : plan.label;
  summary.append(`${who}: `, element('strong', {textContent: shortTime(latency)}));
  if (XLA_PS && plan.label !== 'XLA') {
    const times = XLA_PS / latency;
    const word = times > 1 ? 'faster' : 'slower';
    const compared =
        times === 1 ? 'as fast as' : `${ratio(Math.max(times, 1 / times))} ${word} than`;
    summary.append(`, ${compared} XLA's own plan`);
  }
  summary.append(`. On ${HARDWARE.name}, ${shortBytes(HARDWARE.fast_bytes)} of fast memory.`);
  const {
    stall_ps: waits,
    prefetched_bytes: fetched,
    written_back_bytes: written,
    preloaded_bytes: preloaded,
    peak_fast_bytes: peak
  } = plan.report;
  const {ps: bound, name, status} = DATA.bound;
  const figures = [
    ['Latency', shortTime(latency), exactTime(latency)],
    ...(XLA_PS ? [['XLA', shortTime(XLA_PS), exactTime(XLA_PS)]] : []),
    ['All in main', shortTime(ALL_MAIN_PS), exactTime(ALL_MAIN_PS)],
    [
      'Above bound',
      bound > 0 ? `${(100 * (latency / bound - 1)).toFixed(1)} %` :
          latency > 0 ? '-' :
                        '0.0 %',
      `No plan can be faster than ${exactTime(bound)} (${name}, ${status})`
    ],
    ['Waits', shortTime(waits), exactTime(waits)],
    [
      'Copied in, out', `${shortBytes(fetched)}, ${shortBytes(written)}`,
      `and ${shortBytes(preloaded)} preloaded`
    ],
    ['Most at once', shortBytes(peak), `of ${shortBytes(HARDWARE.fast_bytes)}`],
  ];
  byId('figures').replaceChildren(...figures.map(
      ([name, value, title]) => element(
          'div', {title}, element('dt', {textContent: name}),
          element('dd', {textContent: value}))));
  const broken = PLANS.filter(one => one.broken)
                     .map(one => `The plan of ${one.label} is not valid: ${one.broken}`);
  byId('warning').hidden = !broken.length;
  byId('warning').textContent = broken.join(' ');
  byId('origin').textContent = PROGRAM.origin;
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  readTheme();
  redraw();
}

function listenToToolbar() {
  byId('axis').onchange = event => view.setUnit(event.target.value);
  byId('colour').onchange = event => {
    view.colour = event.target.value;
    drawLegend();
    redraw();
  };
  byId('zoom-in').onclick = () => view.zoomTime(0.6);
  byId('zoom-out').onclick = () => view.zoomTime(1 / 0.6);
  byId('fit').onclick = () => view.all();
  byId('theme').onclick = () =>
      setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark');
  byId('help').onclick = () => byId('keys').showModal();
  byId('arrange').onclick = event => {
    const beside = document.body.classList.toggle('beside');
    event.target.textContent = beside ? 'One above the other' : 'Side by side';
  };
}

/** In words what part of the pictures is seen. */
function showSeen() {
  const number = value => Math.round(value).toLocaleString('en-US');
  const text = view.unit === 'tick' ? number : shortTime;
  const time = `${view.unit === 'tick' ? 'ticks ' : ''}${text(view.x0)} to ${text(view.x1)}`;
  byId('seen').value =
      `${time}, ${shortBytes(Math.round(view.y0))} to ${shortBytes(Math.round(view.y1))}`;
}

/** Keys that work wherever nobody is writing. */
function listenToKeys() {
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input, select') ||
        byId('keys').open)
      return;
    const keys = {'/': () => byId('search').focus(), '?': () => byId('keys').showModal()};
    if (film) {
      keys.j = () => film.by(-1);
      keys.k = () => film.by(1);
      if (!event.target.matches('button')) keys[' '] = () => film.toggle();
    }
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
}

showGroups();
setTheme(window.matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
showHeading();
PLANS.forEach(
    (plan, i) => byId('pictures').append(new Picture(plan, i === PLANS.length - 1).figure));
if (PLANS.length > 1) {
  document.body.classList.add('two');
  byId('arrange').hidden = false;
  showDifferences();
}
listenToToolbar();
listenToSearch();
listenToKeys();
drawers.push(showSeen);
for (const row of document.querySelectorAll('.game-only')) row.hidden = !film;
if (film) document.body.classList.add('game');
view.all();
if (film) listenToFilm();
drawLegend();
