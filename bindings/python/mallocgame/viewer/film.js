// The game as a film: which decision is next, what was legal, what was chosen, and the latency
// after each. A time game's decisions stand in the order of time. A priority game's do not, so it
// is at no tick.

const IN_TIME_ORDER = GAME && GAME.kind === 'time';

/**
 * Null where no game is shown. `step` decisions have been made; `tick` is that of the next, null
 * after the last and in a priority game.
 */
const film = GAME && {
  step: GAME.action.length,
  tick: null,
  timer: null,
  latency: (() => {
    const after = new Float64Array(GAME.action.length + 1);
    after[0] = ALL_MAIN_PS;
    GAME.saved_ps.forEach((saved, i) => {
      after[i + 1] = after[i] - saved;
    });
    return after;
  })(),

  get length() {
    return GAME.action.length;
  },

  goTo(step) {
    this.step = Math.min(Math.max(0, step), this.length);
    this.tick = IN_TIME_ORDER && this.step < this.length ?
        PROGRAM.accesses.tick[GAME.asked[this.step][0][0]] :
        null;
    PLANS[0].show(this.step < this.length ? this.step : Infinity);
    if (this.tick !== null) {
      const x = view.edges(PLANS[0])[this.tick];
      const span = view.x1 - view.x0;
      if (x < view.x0 || x > view.x1) view.setTime(x - span * 0.3, x + span * 0.7);
    }
    byId('step').value = this.step;
    byId('position').textContent =
        `${this.step.toLocaleString('en-US')} of ${this.length.toLocaleString('en-US')}`;
    byId('step').setAttribute('aria-valuetext', `${this.step} of ${this.length} decisions made`);
    byId('decision-body').replaceChildren(...describeDecision(this.step));
    redraw();
  },

  get playing() {
    return this.timer !== null;
  },

  play() {
    if (this.step >= this.length) this.goTo(0);
    const seconds = Number(byId('speed').value);
    let begin = null;
    const from = this.step;
    const next = now => {
      begin ??= now;
      const step =
          Math.min(this.length, from + Math.floor((now - begin) / 1000 / seconds * this.length));
      if (step !== this.step) this.goTo(step);
      if (step < this.length)
        this.timer = requestAnimationFrame(next);
      else
        this.stop();
    };
    this.timer = requestAnimationFrame(next);
    byId('play').textContent = 'Stop';
  },

  stop() {
    if (this.timer !== null) cancelAnimationFrame(this.timer);
    this.timer = null;
    byId('play').textContent = 'Play';
  },

  toggle() {
    if (this.playing)
      this.stop();
    else
      this.play();
  },

  by(steps) {
    this.stop();
    this.goTo(this.step + steps);
  },
};

// A program may take no time at all.
function shareOfAllMain(ps) {
  return ALL_MAIN_PS > 0 ? ps / ALL_MAIN_PS : 0;
}

function describeDecision(step) {
  const latency = film.latency[step];
  if (step >= film.length) {
    const saved = ALL_MAIN_PS - latency;
    const result = `${exactTime(latency)}, return ${shareOfAllMain(saved).toFixed(4)}`;
    return [
      element('p', {
        textContent: `All ${film.length.toLocaleString('en-US')} decisions are made: ${result}.`
      }),
      element(
          'p',
          {className: 'quiet', textContent: 'Play, or go back with j, to see them one by one.'}),
    ];
  }
  const reward = shareOfAllMain(GAME.saved_ps[step]).toFixed(6);
  return [
    ...(IN_TIME_ORDER ? describeAccess(step) : describeCandidates(step)),
    element(
        'p', {},
        `Reward ${reward}; latency ${exactTime(latency)} → ${exactTime(film.latency[step + 1])}.`),
  ];
}

/** A link that selects a buffer. */
function bufferLink(buffer) {
  const link = element('button', {className: 'link', textContent: bufferName(buffer)});
  link.onclick = () => select(buffer, PLANS[0], PLANS[0].boxesOf(buffer)[0] || null);
  return link;
}

function describeAccess(step) {
  const [[access]] = GAME.asked[step];
  const buffer = PROGRAM.accesses.buffer[access];
  const tick = PROGRAM.accesses.tick[access];
  return [
    element(
        'p', {},
        `${step + 1} of ${film.length}: ${ACCESS_KINDS[PROGRAM.accesses.kind[access]]} of `,
        bufferLink(buffer),
        ` (${shortBytes(bufferBytes(buffer))}) at ${instructionName(tick)}, tick ${tick}${
            tripsText(tick)}.`),
    element(
        'ul', {className: 'actions'},
        ...GAME.actions.map((_, action) => describeAction(step, action))),
  ];
}

/** The segments that a priority game shows, each with its legal actions. */
function describeCandidates(step) {
  const question = GAME.asked[step].length === 1 ?
      'how is this segment served?' :
      'which of these segments is next, and how is it served?';
  const heading = `${step + 1} of ${film.length}: ${question}`;
  const parts = GAME.asked[step].map(([first, last], candidate) => {
    const buffer = PROGRAM.accesses.buffer[first];
    const ticks = [PROGRAM.accesses.tick[first], PROGRAM.accesses.tick[last]];
    const where = ticks[0] === ticks[1] ? `tick ${ticks[0]}` : `ticks ${ticks[0]} to ${ticks[1]}`;
    const actions = GAME.actions.map((_, action) => action)
                        .filter(
                            action => Math.floor(action / GAME.modes) === candidate &&
                                (GAME.legal[step] >> action) & 1);
    return [
      element(
          'p', {}, `${candidate}: `, bufferLink(buffer),
          ` (${shortBytes(bufferBytes(buffer))}), ${where}`),
      element('ul', {className: 'actions'}, ...actions.map(action => describeAction(step, action))),
    ];
  });
  return [element('p', {textContent: heading}), ...parts.flat()];
}

function describeAction(step, action) {
  const legal = (GAME.legal[step] >> action) & 1;
  const chosen = GAME.action[step] === action;
  const saved = GAME.saved_ps[step];
  const visits = GAME.visits[step];  // undefined where no search was logged
  const words = element('span', {
    textContent: !legal ? 'not legal' :
        !chosen         ? 'legal' :
                          `chosen, ${saved < 0 ? 'costs' : 'saves'} ${exactTime(Math.abs(saved))}`
  });
  if (visits && legal) {
    const whole = Math.max(1, visits.reduce((a, b) => a + b, 0));
    const value = GAME.values[step][action].toFixed(4);
    words.append(
        element('span', {className: 'bar', style: `width:${100 * visits[action] / whole}%`}),
        element(
            'small',
            {textContent: `${visits[action].toLocaleString('en-US')} visits, value ${value}`}));
  }
  const className = chosen ? 'chosen' : legal ? '' : 'illegal';
  return element('li', {className}, element('span', {textContent: GAME.actions[action]}), words);
}

// The latency after each decision.

const CURVE_LEFT = 74;

function drawCurve() {
  const canvas = byId('curve');
  const scale = window.devicePixelRatio || 1;
  const {clientWidth: width, clientHeight: height} = canvas;
  if (!width) return;
  if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
  if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
  const context = canvas.getContext('2d', {alpha: false});
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.fillStyle = theme.panel;
  context.fillRect(0, 0, width, height);
  context.font = FONT;
  const lines =
      [['XLA', XLA_PS, 'xla'], ['bound', DATA.bound.ps, 'least']].filter(([, ps]) => ps !== null);
  // More steps than two for each pixel would only take time.
  const stride = Math.max(1, Math.ceil(film.length / (2 * width)));
  const steps = [];
  for (let step = 0; step < film.length; step += stride) steps.push(step);
  steps.push(film.length);
  const values = [...steps.map(step => film.latency[step]), ...lines.map(([, ps]) => ps)];
  const low = Math.min(...values);
  const high = Math.max(...values, low + 1);
  const right = width - 64;
  const x = step => CURVE_LEFT + step / Math.max(1, film.length) * (right - CURVE_LEFT);
  const y = ps => height - 8 - (ps - low) / (high - low) * (height - 18);
  const frame = {context, left: CURVE_LEFT, right};
  text(frame, shortTime(high), CURVE_LEFT - 6, y(high), theme.quiet, 'right');
  text(frame, shortTime(low), CURVE_LEFT - 6, y(low), theme.quiet, 'right');
  const close = lines.length === 2 && Math.abs(y(lines[0][1]) - y(lines[1][1])) < 14;
  lines.forEach(([name, ps, colour], i) => {
    context.strokeStyle = theme[colour];
    context.setLineDash([5, 4]);
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(CURVE_LEFT, y(ps));
    context.lineTo(right, y(ps));
    context.stroke();
    text(
        frame, name, right + 6,
        Math.min(y(ps) + (close ? (ps >= lines[1 - i][1] ? -7 : 7) : 0), height - 7),
        theme[colour]);
  });
  context.setLineDash([]);
  context.strokeStyle = theme.plan;
  context.lineWidth = 2;
  context.beginPath();
  steps.forEach((step, i) => {
    if (i) context.lineTo(x(step), y(film.latency[steps[i - 1]]));
    context[i ? 'lineTo' : 'moveTo'](x(step), y(film.latency[step]));
  });
  context.stroke();
  context.fillStyle = theme.accent;
  context.fillRect(x(film.step) - 1, 0, 2, height);
  context.beginPath();
  context.arc(x(film.step), y(film.latency[film.step]), 4, 0, 2 * Math.PI);
  context.fill();
}

function listenToFilm() {
  byId('film').hidden = byId('decision').hidden = false;
  byId('step').max = film.length;
  byId('step').addEventListener('input', event => {
    film.stop();
    film.goTo(Number(event.target.value));
  });
  byId('first').onclick = () => film.by(-film.length);
  byId('back').onclick = () => film.by(-1);
  byId('forward').onclick = () => film.by(1);
  byId('last').onclick = () => film.by(film.length);
  byId('play').onclick = () => film.toggle();
  byId('speed').onchange = () => {
    if (film.playing) {
      film.stop();
      film.play();
    }
  };
  const canvas = byId('curve');
  const scrub = event => {
    if (event.type === 'pointermove' && !event.buttons) return;
    film.stop();
    film.goTo(Math.round(
        (event.offsetX - CURVE_LEFT) / (canvas.clientWidth - 64 - CURVE_LEFT) * film.length));
  };
  canvas.addEventListener('pointerdown', scrub);
  canvas.addEventListener('pointermove', scrub);
  drawers.push(drawCurve);
  new ResizeObserver(redraw).observe(canvas);
  film.goTo(film.length);
}
