// The panels of a picture. Each draws one rectangle of a canvas, which clips it, and the words on
// its left, and says what lies under a point. A `frame` is {context, left, right, x(time) ->
// pixel}; a panel has top and bottom in pixels.

const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const SIZE_COLOURS = ['#3b6fb6', '#2a808c', '#2b8756', '#7d8420', '#b8740f', '#c4503a'];
// bytes; above the last: the last colour
const SIZE_LIMITS = [2 ** 16, 2 ** 18, 2 ** 20, 2 ** 22, 2 ** 24];

let theme = {};

/** Colours of the style sheet, read again when light turns to dark. */
function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const names = [
    'panel', 'line',   'grid',      'text',       'quiet',   'accent',   'shade',
    'hatch', 'on-box', 'stall',     'idle',       'used',    'plan',     'other',
    'xla',   'least',  'preloaded', 'prefetched', 'evicted', 'only-fast'
  ];
  theme = Object.fromEntries(names.map(name => [name, style.getPropertyValue(`--${name}`).trim()]));
  theme.kinds = KINDS.map(kind => theme[kind.colour.slice(2)]);
}

const sizeClass = bytes => {
  const index = SIZE_LIMITS.findIndex(limit => bytes < limit);
  return index < 0 ? SIZE_LIMITS.length : index;
};
const boxColour = box =>
    (view.colour === 'kind' ? theme.kinds[box.kind] : SIZE_COLOURS[sizeClass(box.bytes)]);
const onBox = () => (view.colour === 'kind' ? theme['on-box'] : '#ffffff');

/** The least index from `low` to `high` whose edge is at least `value`, else `high`. */
function firstAtLeast(edges, value, low, high) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (edges[middle] < value)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/** Calls use(x, width, from, to) for groups of ticks that are at least a pixel wide together. */
function eachColumn(frame, plan, use) {
  const edges = view.edges(plan);
  const pixel = (view.x1 - view.x0) / (frame.right - frame.left);
  const last = Math.min(TICKS - 1, intervalAt(edges, view.x1));
  let from = firstAtLeast(edges, edges[intervalAt(edges, view.x0)], 0, TICKS);
  while (from <= last) {
    const x = frame.x(edges[from]);
    const to = firstAtLeast(edges, edges[from] + pixel, from + 1, last + 1);
    use(x, Math.max(1, frame.x(edges[to]) - x), from, to);
    from = to;
  }
}

/** A value's line across a panel. */
function gridLine(frame, y) {
  frame.context.fillStyle = theme.grid;
  frame.context.fillRect(frame.left, Math.round(y) + 0.5, frame.right - frame.left, 1);
}

/** Words on the left of a panel, at a height inside it. */
function besides(frame, panel, content, y) {
  text(
      frame, content, frame.left - 6, Math.min(Math.max(y, panel.top + 7), panel.bottom - 6),
      theme.quiet, 'right');
}

function text(frame, content, x, y, colour, align = 'left') {
  frame.context.fillStyle = colour;
  frame.context.textAlign = align;
  frame.context.textBaseline = 'middle';
  frame.context.fillText(content, x, y);
}

/** Text on a plate, so that it can be read over anything. */
function plate(frame, content, x, y) {
  const width = frame.context.measureText(content).width;
  frame.context.globalAlpha = 0.85;
  frame.context.fillStyle = theme.panel;
  frame.context.fillRect(x - 3, y - 8, width + 6, 16);
  frame.context.globalAlpha = 1;
  text(frame, content, x, y, theme.quiet);
}

/** `content`, shortened in the middle to fit `width` pixels; '' if too little would be left. */
function shortened(context, content, width) {
  const whole = context.measureText(content).width;
  if (whole <= width) return content;
  const room = Math.floor(width / whole * content.length * 0.94) - 1;
  if (room < 3) return '';
  return `${content.slice(0, Math.ceil(room / 2))}…${
      content.slice(content.length - Math.floor(room / 2))}`;
}

class MemoryPanel {
  constructor(plan) {
    this.plan = plan;
    this.raster = new Raster();
  }

  y(address) {
    return this.bottom - (address - view.y0) / (view.y1 - view.y0) * (this.bottom - this.top);
  }
  address(y) {
    return view.y0 + (this.bottom - y) / (this.bottom - this.top) * (view.y1 - view.y0);
  }

  rectangle(frame, box) {
    const edges = view.edges(this.plan);
    const left = frame.x(edges[box.begin]);
    const right = frame.x(edges[box.end]);
    const top = this.y(box.offset + box.bytes);
    const bottom = this.y(box.offset);
    return {left, top, width: Math.max(1, right - left), height: Math.max(1, bottom - top)};
  }

  get addresses() {
    return roundValues(view.y0, view.y1, (this.bottom - this.top) / 44, 2);
  }

  draw(frame) {
    for (const value of this.addresses) gridLine(frame, this.y(value));
    this.drawReserved(frame);
    this.drawLoops(frame);
    this.drawBoxes(frame);
    this.drawSelected(frame);
  }

  drawWords(frame) {
    for (const value of this.addresses)
      besides(frame, this, value === 0 ? '0' : shortBytes(value), this.y(value));
  }

  drawReserved(frame) {
    const reserved = PROGRAM.instructions.reserved;
    if (!ANY_RESERVED) return;
    this.raster.begin(frame, this);
    eachColumn(frame, this.plan, (x, width, from, to) => {
      let most = 0;
      for (let i = from; i < to; ++i) most = Math.max(most, reserved[i]);
      const [top, bottom] = [this.y(most), this.y(Math.max(0, view.y0))];
      if (most > view.y0) this.raster.rect(x, top, width, bottom - top, theme.hatch);
    });
    this.raster.end();
  }

  drawLoops(frame) {
    const {context} = frame;
    const edges = view.edges(this.plan);
    const {entry, exit, trips} = PROGRAM.loops;
    entry.forEach((begin, i) => {
      const left = frame.x(edges[begin]);
      const right = frame.x(edges[exit[i] + 1]);
      if (right < frame.left || left > frame.right || right - left < 3) return;
      context.fillStyle = theme.shade;
      context.fillRect(left, this.top, right - left, this.bottom - this.top);
      const words = `loop, ${trips[i].toLocaleString('en-US')} trips`;
      if (right - left > 60) plate(frame, words, Math.max(left, frame.left) + 6, this.top + 10);
    });
  }

  drawBoxes(frame) {
    const {context} = frame;
    const labels = [];
    this.raster.begin(frame, this);
    for (const box of this.plan.residencesNow) {
      const r = this.rectangle(frame, box);
      if (r.left > frame.right || r.left + r.width < frame.left) continue;
      if (r.top > this.bottom || r.top + r.height < this.top) continue;
      const gap = r.width > 5 && r.height > 5 ? 1 : 0;
      this.raster.rect(r.left, r.top, r.width - gap, r.height - gap, boxColour(box));
      if (r.width > 44 && r.height > 13) labels.push([box, r]);
    }
    this.raster.end();
    context.font = FONT;
    for (const [box, r] of labels) {
      const left = Math.max(r.left, frame.left);
      const right = Math.min(r.left + r.width, frame.right);
      const top = Math.max(r.top, this.top);
      const bottom = Math.min(r.top + r.height, this.bottom);
      if (right - left < 44 || bottom - top < 13) continue;
      text(
          frame, shortened(context, bufferName(box.buffer), right - left - 8), left + 4,
          (top + bottom) / 2, onBox());
    }
  }

  /** Outlines of the buffer selected and of the one under the mouse, with its accesses. */
  drawSelected(frame) {
    const {context} = frame;
    for (const buffer of new Set([view.hovered, view.selected])) {
      if (buffer === null) continue;
      context.lineWidth = buffer === view.selected ? 2.5 : 1.5;
      context.strokeStyle = theme.text;
      for (const box of this.plan.boxesOf(buffer)) {
        const r = this.rectangle(frame, box);
        context.strokeRect(r.left - 1, r.top - 1, r.width + 1, r.height + 1);
      }
      const edges = view.edges(this.plan);
      for (const access of ACCESSES_OF[buffer]) {
        const tick = PROGRAM.accesses.tick[access];
        const x = (frame.x(edges[tick]) + frame.x(edges[tick + 1])) / 2;
        const y = this.bottom - 5;
        if (x < frame.left || x > frame.right) continue;
        context.beginPath();
        context.moveTo(x, y - 7);
        context.lineTo(x - 4, y);
        context.lineTo(x + 4, y);
        context.closePath();
        context.fillStyle = this.plan.served[access] >= 0 ? theme.text : theme.panel;
        context.lineWidth = 1.2;
        context.fill();
        context.stroke();
      }
    }
  }

  /** The box under a point; small ones can be missed by two pixels. */
  at(frame, x, y) {
    let best = null;
    let nearest = 2.5;
    for (const box of this.plan.residencesNow) {
      const r = this.rectangle(frame, box);
      const away = Math.max(r.left - x, x - r.left - r.width, r.top - y, y - r.top - r.height, 0);
      if (away < nearest || (away === 0 && best === null)) [best, nearest] = [box, away];
      if (away === 0) break;
    }
    return best;
  }
}

class CopyPanel {
  constructor(plan) {
    this.plan = plan;
    this.raster = new Raster();
  }

  rectangle(frame, copy) {
    const edges = view.edges(this.plan);
    const lane = (this.bottom - this.top - 2) / Math.max(3, this.plan.lanes);
    const left = frame.x(edges[copy.begin]);
    const width = Math.max(2, frame.x(edges[copy.end]) - left);
    return {left, top: this.top + 1 + lane * copy.lane, width, height: Math.max(1.5, lane - 1)};
  }

  draw(frame) {
    const draw = (copies, alpha) => {
      this.raster.begin(frame, this);
      for (const copy of copies) {
        const r = this.rectangle(frame, copy);
        if (r.left > frame.right || r.left + r.width < frame.left) continue;
        const colour = copy.kind === PREFETCH ? theme.prefetched : theme.evicted;
        this.raster.rect(r.left, r.top, r.width, r.height, colour);
      }
      frame.context.globalAlpha = alpha;
      this.raster.end();
      frame.context.globalAlpha = 1;
    };
    const all = this.plan.copiesNow;
    draw(all, view.selected === null ? 1 : 0.45);
    if (view.selected !== null) draw(all.filter(copy => copy.buffer === view.selected), 1);
  }

  drawWords(frame) {
    besides(frame, this, 'Copies', (this.top + this.bottom) / 2);
  }

  at(frame, x, y) {
    return this.plan.copiesNow.find(copy => {
      const r = this.rectangle(frame, copy);
      return x >= r.left - 2 && x <= r.left + r.width + 2 && y >= r.top - 1 &&
          y <= r.top + r.height + 1;
    });
  }
}

class ChannelPanel {
  constructor(plan) {
    this.plan = plan;
    this.raster = new Raster();
  }

  /**
   * Heights are shares of the time: what instructions leave of the channel, and what copies took of
   * that.
   */
  draw(frame) {
    const sumOf = (name, from, to) => this.plan.sums[name][to] - this.plan.sums[name][from];
    const height = this.bottom - this.top - 2;
    this.raster.begin(frame, this);
    const bar = (colour, x, width, share) => {
      if (share > 0)
        this.raster.rect(x, this.bottom - 1 - height * share, width, height * share, colour);
    };
    const waits = [];
    eachColumn(frame, this.plan, (x, width, from, to) => {
      const whole = sumOf('compute', from, to);
      const waited = sumOf('stall', from, to);
      const all = whole + waited;
      if (!(all > 0)) return;
      const before = view.unit === 'time' ? width * waited / all : 0;
      if (whole > 0) {
        bar(theme.idle, x + before, width - before, sumOf('idle', from, to) / whole);
        bar(theme.used, x + before, width - before, sumOf('copied', from, to) / whole);
      }
      if (waited > 0)
        waits.push(
            [x, view.unit === 'time' ? Math.max(before, 1) : Math.min(width, 4), waited / all]);
    });
    for (const [x, width, share] of waits)
      bar(theme.stall, x, width, view.unit === 'time' ? 1 : Math.max(share, 0.12));
    this.raster.end();
  }

  drawWords(frame) {
    besides(frame, this, 'Channel', (this.top + this.bottom) / 2);
  }
}

/** Time spent so far beyond the least prices of the instructions: level where nothing is lost. */
class LossPanel {
  constructor(plan) {
    this.plan = plan;
    this.curves = PLANS.map(
        (one, i) => ({label: one.label, sums: one.starts, colour: i === 0 ? 'plan' : 'other'}));
    if (XLA_SUM && !PLANS.some(one => one.label === 'XLA'))
      this.curves.push({label: 'XLA', sums: XLA_SUM, colour: 'xla'});
  }

  /** [pixel, tick] of the curves' corners in sight, and the values between which they lie. */
  measure(frame) {
    this.corners = [];
    eachColumn(frame, this.plan, (x, width, from, to) => {
      if (!this.corners.length) this.corners.push([x, from]);
      this.corners.push([x + width, to]);
    });
    this.low = Infinity;
    this.high = -Infinity;
    for (const {sums} of this.curves) {
      for (const [, tick] of this.corners) {
        this.low = Math.min(this.low, sums[tick] - LEAST_SUM[tick]);
        this.high = Math.max(this.high, sums[tick] - LEAST_SUM[tick]);
      }
    }
    if (!(this.high > this.low)) this.high = this.low + 1;
  }

  y(value) {
    return this.bottom - 4 -
        (value - this.low) / (this.high - this.low) * (this.bottom - this.top - 10);
  }

  draw(frame) {
    const {context} = frame;
    this.measure(frame);
    for (const value of roundValues(this.low, this.high, 2)) gridLine(frame, this.y(value));
    for (const {sums, colour} of [...this.curves].reverse()) {
      context.beginPath();
      this.corners.forEach(
          ([x, tick], i) =>
              context[i ? 'lineTo' : 'moveTo'](x, this.y(sums[tick] - LEAST_SUM[tick])));
      context.strokeStyle = theme[colour];
      context.lineWidth = 2;
      context.stroke();
    }
    plate(frame, 'above the bound, so far', frame.left + 6, this.top + 9);
  }

  drawWords(frame) {
    for (const value of roundValues(this.low, this.high, 2))
      besides(frame, this, shortTime(value), this.y(value));
  }
}
