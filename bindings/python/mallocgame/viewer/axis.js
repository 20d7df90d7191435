// What part of time and of addresses is seen, in which unit time is counted, and who wants to know
// when that changes.

/** Round values between low and high, at most about `count`; `base` 2 for bytes. */
function roundValues(low, high, count, base = 10) {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0)) return [];
  const power = base ** Math.floor(Math.log(rough) / Math.log(base));
  const step = base === 2 ? power * (power < rough ? 2 : 1) :
                            power * [1, 2, 5, 10].find(factor => factor * power >= rough);
  const values = [];
  for (let i = Math.ceil(low / step); i * step <= high; ++i) values.push(i * step);
  return values;
}

/** Index i with edges[i] <= value < edges[i + 1], kept inside; of equal edges the last. */
function intervalAt(edges, value) {
  let low = 0;
  let high = edges.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (edges[middle] <= value)
      low = middle;
    else
      high = middle;
  }
  return low;
}

const TICK_EDGES = Float64Array.from({length: TICKS + 1}, (_, tick) => tick);

/** What "all" addresses are: all of fast memory, or the part in use where that is small. */
const USED_BYTES = (() => {
  let top = 0;
  for (const plan of PLANS)
    for (const box of plan.residences) top = Math.max(top, box.offset + box.bytes);
  for (const bytes of PROGRAM.instructions.reserved) top = Math.max(top, bytes);
  return top > 0 && top < HARDWARE.fast_bytes / 2 ? Math.min(HARDWARE.fast_bytes, top * 1.1) :
                                                    HARDWARE.fast_bytes;
})();

/**
 * One for the whole page: all pictures show the same part. Time is [x0, x1) ticks or picoseconds,
 * addresses [y0, y1) bytes.
 */
const view = {
  unit: 'time',
  colour: 'kind',
  selected: null,  // buffer
  hovered: null,   // buffer
  cursor: null,    // a point in time, in the unit
  x0: 0,
  x1: 1,
  y0: 0,
  y1: 1,

  get width() {
    return this.unit === 'tick' ? TICKS : Math.max(1, ...PLANS.map(plan => plan.starts[TICKS]));
  },

  edges(plan) {
    return this.unit === 'tick' ? TICK_EDGES : plan.starts;
  },

  setTime(x0, x1) {
    const whole = this.width;
    const least = this.unit === 'tick' ? Math.min(2, whole) : whole / 1e6;
    const span = Math.min(whole, Math.max(least, x1 - x0));
    const centre = (x0 + x1) / 2;
    this.x0 = Math.min(Math.max(0, centre - span / 2), whole - span);
    this.x1 = this.x0 + span;
    redraw();
  },

  setAddresses(y0, y1) {
    const whole = HARDWARE.fast_bytes;
    const span = Math.min(whole, Math.max(whole / 2 ** 16, y1 - y0));
    const centre = (y0 + y1) / 2;
    this.y0 = Math.min(Math.max(0, centre - span / 2), whole - span);
    this.y1 = this.y0 + span;
    redraw();
  },

  /** factor < 1: closer. `at` stays where it is. */
  zoomTime(factor, at = (this.x0 + this.x1) / 2) {
    this.setTime(at + (this.x0 - at) * factor, at + (this.x1 - at) * factor);
  },
  zoomAddresses(factor, at = (this.y0 + this.y1) / 2) {
    this.setAddresses(at + (this.y0 - at) * factor, at + (this.y1 - at) * factor);
  },
  pan(time, addresses) {
    this.setTime(this.x0 + time, this.x1 + time);
    this.setAddresses(this.y0 + addresses, this.y1 + addresses);
  },
  all() {
    this.setTime(0, this.width);
    this.setAddresses(0, USED_BYTES);
  },

  /** The same instructions stay in sight. */
  setUnit(unit) {
    const before = this.edges(PLANS[0]);
    const tickOf = x => {
      const tick = intervalAt(before, x);
      const length = before[tick + 1] - before[tick];
      return tick + (length > 0 ? Math.min(1, (x - before[tick]) / length) : 0);
    };
    const [from, to] = [tickOf(this.x0), tickOf(this.x1)];
    const whole = this.x0 <= 0 && this.x1 >= this.width;
    this.unit = unit;
    const after = this.edges(PLANS[0]);
    const place = tick => {
      const i = Math.min(Math.floor(tick), TICKS - 1);
      return after[i] + (after[i + 1] - after[i]) * (tick - i);
    };
    this.cursor = null;
    if (whole)
      this.setTime(0, this.width);
    else
      this.setTime(place(from), place(to));
  },

  /** Brings ticks [begin, end) of a plan into sight, with room around. */
  reveal(plan, begin, end) {
    const edges = this.edges(plan);
    const [from, to] = [edges[begin], edges[Math.min(end, TICKS)]];
    const room = Math.max((to - from) * 1.5, this.width / 60);
    this.setTime(from - room, to + room);
  },
};

// Drawing happens once a frame, whatever asked for it.

const drawers = [];
let waiting = false;

function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    for (const draw of drawers) draw();
  });
}
