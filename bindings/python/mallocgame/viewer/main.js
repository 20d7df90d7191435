// Puts the page together.

function showHeading() {
  const [plan] = PLANS;
  byId('title').textContent = PROGRAM.name;
  const latency = plan.report.latency_ps;
  const summary = byId('summary');
  summary.append(PLANS.length > 1 ? `${plan.label} against ${PLANS[1].label}: ` : `${plan.label}: `, element('strong', {textContent: shortTime(latency)}));
  if (XLA_PS && plan.label !== 'XLA') {
    const times = XLA_PS / latency;
    summary.append(times === 1 ? ', as fast as XLA\'s own plan' : `, ${ratio(Math.max(times, 1 / times))} ${times > 1 ? 'faster' : 'slower'} than XLA's own plan`);
  }
  summary.append(`. On ${HARDWARE.name}, ${shortBytes(HARDWARE.fast_bytes)} of fast memory.`);
  const gap = latency / DATA.bound.ps - 1;
  const figures = [['Latency', shortTime(latency), exactTime(latency)],
    ...(XLA_PS ? [['XLA', shortTime(XLA_PS), exactTime(XLA_PS)]] : []),
    ['All in main', shortTime(ALL_MAIN_PS), exactTime(ALL_MAIN_PS)],
    ['Above bound', `${(100 * gap).toFixed(1)} %`, `No plan can be faster than ${exactTime(DATA.bound.ps)} (${DATA.bound.name}, ${DATA.bound.status})`],
    ['Waits', shortTime(plan.report.stall_ps), exactTime(plan.report.stall_ps)],
    ['Copied in, out', `${shortBytes(plan.report.prefetched_bytes)}, ${shortBytes(plan.report.written_back_bytes)}`, `and ${shortBytes(plan.report.preloaded_bytes)} preloaded`],
    ['Most at once', shortBytes(plan.report.peak_fast_bytes), `of ${shortBytes(HARDWARE.fast_bytes)}`]];
  byId('figures').replaceChildren(...figures.map(([name, value, title]) =>
    element('div', {title}, element('dt', {textContent: name}), element('dd', {textContent: value}))));
  const broken = PLANS.filter(one => one.broken).map(one => `The plan of ${one.label} is not valid: ${one.broken}`);
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
  byId('theme').onclick = () => setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark');
  byId('help').onclick = () => byId('keys').showModal();
  byId('arrange').onclick = event => {
    const beside = document.body.classList.toggle('beside');
    event.target.textContent = beside ? 'One above the other' : 'Side by side';
  };
}

/** In words what part of the pictures is seen. */
function showSeen() {
  const number = value => Math.round(value).toLocaleString('en-US');
  const time = view.unit === 'tick' ? `ticks ${number(view.x0)} to ${number(view.x1)}` : `${shortTime(view.x0)} to ${shortTime(view.x1)}`;
  byId('seen').value = `${time}, ${shortBytes(Math.round(view.y0))} to ${shortBytes(Math.round(view.y1))}`;
}

/** Keys that work wherever nobody is writing. */
function listenToKeys() {
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input, select') || byId('keys').open) return;
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

setTheme(window.matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
showHeading();
PLANS.forEach((plan, i) => byId('pictures').append(new Picture(plan, i === PLANS.length - 1).figure));
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
