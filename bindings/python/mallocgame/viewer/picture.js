// One picture: a plan's panels on one canvas, with the mouse, fingers and keys that move it.

const LEFT = 74;  // pixels for the words beside the panels
const RIGHT = 12;
const AXIS = 24;
const BAND = 18;
const DRAG = 4;  // pixels that tell a drag from a click

const pictures = [];

/** Pixels from where a pointer went down. */
const far = (event, [x, y]) => Math.hypot(event.offsetX - x, event.offsetY - y);

class Picture {
  /** `last`: the lowest of those one above the other, which has the curves for all. */
  constructor(plan, last) {
    this.plan = plan;
    this.band = new BandPanel(plan);
    this.memory = new MemoryPanel(plan);
    this.copies = new CopyPanel(plan);
    this.channel = new ChannelPanel(plan);
    this.loss = new LossPanel(plan);
    this.last = last;
    this.canvas = element('canvas', {tabIndex: 0});
    this.canvas.setAttribute('role', 'application');
    this.canvas.setAttribute('aria-roledescription', 'memory picture');
    this.canvas.setAttribute('aria-label', this.describe());
    const note = ` ${shortTime(plan.report.latency_ps)}, waits ${shortTime(plan.report.stall_ps)}`;
    this.figure = element('figure', {}, element('div', {className: 'frame'}, this.canvas));
    if (PLANS.length > 1)
      this.figure.prepend(
          element('figcaption', {}, plan.label, element('span', {textContent: note})));
    this.pointers = new Map();
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    drawers.push(() => this.draw());
    pictures.push(this);
  }

  describe() {
    const {label, residencesNow, copiesNow, report} = this.plan;
    const stays = residencesNow.length, copies = copiesNow.length;
    const latency = exactTime(report.latency_ps);
    return `Fast memory under the plan of ${label}: ${stays} stays of buffers, ${copies} copies, ` +
        `latency ${latency}. Arrow keys move, plus and minus zoom, ` +
        `comma and full stop go from box to box.`;
  }

  resize() {
    const scale = window.devicePixelRatio || 1;
    const {clientWidth: width, clientHeight: height} = this.canvas;
    if (!width || !height) return;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.context = this.canvas.getContext('2d', {alpha: false});
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.width = width;
    this.height = height;
    const unit = Math.min(64, Math.max(34, height * 0.11));
    let bottom = height - AXIS;
    const place = (panel, size) => {
      panel.bottom = bottom;
      panel.top = bottom - size;
      bottom -= size + 8;
    };
    if (this.withLoss) place(this.loss, unit * 1.6);
    place(this.channel, unit);
    place(this.copies, unit);
    place(this.memory, bottom - (this.withBand ? BAND + 16 : 8));
    if (this.withBand) place(this.band, BAND);
    this.draw();  // at once: a resized canvas is empty
  }

  get withLoss() {
    return this.last || document.body.classList.contains('beside');
  }

  get withBand() {
    return groups.shown.by !== 'opcode';
  }

  get panels() {
    return [
      ...(this.withBand ? [this.band] : []), this.memory, this.copies, this.channel,
      ...(this.withLoss ? [this.loss] : [])
    ];
  }

  /** What panels draw in: pixels of the part of time that is seen. */
  frame() {
    const right = this.width - RIGHT;
    const scale = (right - LEFT) / (view.x1 - view.x0);
    return {context: this.context, left: LEFT, right, x: time => LEFT + (time - view.x0) * scale};
  }
  time(x) {
    return view.x0 + (x - LEFT) / (this.width - RIGHT - LEFT) * (view.x1 - view.x0);
  }

  draw() {
    const {context} = this;
    if (!context) return;
    const frame = this.frame();
    context.fillStyle = theme.panel;
    context.fillRect(0, 0, this.width, this.height);
    context.font = FONT;
    this.drawAxis(frame);
    for (const panel of this.panels) {
      context.save();
      context.beginPath();
      context.rect(frame.left, panel.top, frame.right - frame.left, panel.bottom - panel.top);
      context.clip();
      panel.draw(frame);
      context.restore();
      context.strokeStyle = theme.line;
      context.lineWidth = 1;
      context.strokeRect(
          frame.left - 0.5, panel.top - 0.5, frame.right - frame.left + 1,
          panel.bottom - panel.top + 1);
      panel.drawWords(frame);
    }
    this.drawMoment(frame);
  }

  drawAxis(frame) {
    const y = this.height - AXIS + 13;
    const values = roundValues(view.x0, view.x1, (frame.right - frame.left) / 110);
    for (const value of values) {
      if (view.unit === 'tick' && !Number.isInteger(value)) continue;
      const x = frame.x(value);
      this.context.fillStyle = theme.line;
      this.context.fillRect(Math.round(x), this.height - AXIS, 1, 5);
      const label = view.unit === 'tick' ? value.toLocaleString('en-US') : shortTime(value);
      const half = this.context.measureText(label).width / 2;
      text(
          frame, label, Math.min(Math.max(x, frame.left + half), frame.right - half), y,
          theme.quiet, 'center');
    }
    text(frame, view.unit === 'tick' ? 'tick' : 'time', frame.left - 10, y, theme.quiet, 'right');
  }

  /** The line under the mouse, and in a game what is not decided yet. */
  drawMoment(frame) {
    const {context} = this;
    const bottom = this.panels[this.panels.length - 1].bottom;
    if (film && this.plan === PLANS[0] && film.tick !== null) {
      const edges = view.edges(this.plan);
      const x = Math.min(Math.max(frame.x(edges[film.tick]), frame.left), frame.right);
      context.fillStyle = theme.shade;
      context.fillRect(x, this.memory.top, frame.right - x, this.memory.bottom - this.memory.top);
      context.fillStyle = theme.accent;
      context.fillRect(x - 1, this.memory.top, 2, bottom - this.memory.top);
      if (frame.right - x > 130) plate(frame, 'not decided yet', x + 8, this.memory.bottom - 14);
    }
    if (view.cursor === null) return;
    const x = frame.x(view.cursor);
    if (x < frame.left || x > frame.right) return;
    context.fillStyle = theme.quiet;
    context.fillRect(Math.round(x), this.memory.top, 1, bottom - this.memory.top);
  }

  // What is under a point.

  at(x, y) {
    const panel = this.panels.find(one => y >= one.top && y <= one.bottom);
    if (!panel || x < LEFT || x > this.width - RIGHT) return null;
    const edges = view.edges(this.plan);
    const found = {
      panel,
      tick: intervalAt(edges, Math.min(Math.max(this.time(x), 0), edges[TICKS] - 1e-9))
    };
    if (panel === this.memory) found.box = panel.at(this.frame(), x, y);
    if (panel === this.copies) found.copy = panel.at(this.frame(), x, y);
    return found;
  }

  // Mouse and fingers.

  listen() {
    const {canvas} = this;
    canvas.addEventListener('wheel', event => this.wheel(event), {passive: false});
    canvas.addEventListener('pointerdown', event => this.down(event));
    canvas.addEventListener('pointermove', event => this.move(event));
    canvas.addEventListener('pointerup', event => this.up(event));
    canvas.addEventListener('pointercancel', event => this.pointers.delete(event.pointerId));
    canvas.addEventListener('pointerleave', () => this.leave());
    canvas.addEventListener('dblclick', event => this.doubleClick(event));
    canvas.addEventListener('keydown', event => this.key(event));
  }

  wheel(event) {
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY) && !event.shiftKey) {
      view.pan(event.deltaX / this.width * (view.x1 - view.x0), 0);
      return;
    }
    const factor =
        Math.exp((event.deltaY || event.deltaX) * (event.deltaMode === 1 ? 0.05 : 0.0015));
    if (event.shiftKey)
      view.zoomAddresses(factor, this.memory.address(event.offsetY));
    else
      view.zoomTime(factor, this.time(event.offsetX));
  }

  down(event) {
    this.canvas.focus({preventScroll: true});
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(
        event.pointerId,
        {x: event.offsetX, y: event.offsetY, began: [event.offsetX, event.offsetY]});
  }

  move(event) {
    const pointer = this.pointers.get(event.pointerId);
    if (!pointer) {
      this.hover(event);
      return;
    }
    const [dx, dy] = [event.offsetX - pointer.x, event.offsetY - pointer.y];
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const before = Math.hypot(pointer.x - other.x, pointer.y - other.y);
      const after = Math.hypot(event.offsetX - other.x, event.offsetY - other.y);
      if (before > 0 && after > 0)
        view.zoomTime(before / after, this.time((event.offsetX + other.x) / 2));
    } else if (this.canvas.classList.contains('dragging') || far(event, pointer.began) > DRAG) {
      this.canvas.classList.add('dragging');
      tip.hide();
      view.pan(
          -dx / (this.width - LEFT - RIGHT) * (view.x1 - view.x0),
          dy / (this.memory.bottom - this.memory.top) * (view.y1 - view.y0));
    }
    [pointer.x, pointer.y] = [event.offsetX, event.offsetY];
  }

  up(event) {
    this.pointers.delete(event.pointerId);
    if (this.canvas.classList.contains('dragging')) {
      this.canvas.classList.remove('dragging');
      return;
    }
    const found = this.at(event.offsetX, event.offsetY);
    const what = found && (found.box || found.copy);
    select(what ? what.buffer : null, this.plan, found && found.box);
  }

  doubleClick(event) {
    const found = this.at(event.offsetX, event.offsetY);
    if (found && found.box)
      this.zoomTo(found.box);
    else
      view.zoomTime(0.5, this.time(event.offsetX));
  }

  hover(event) {
    const found = this.at(event.offsetX, event.offsetY);
    const what = found && (found.box || found.copy);
    view.hovered = what ? what.buffer : null;
    view.cursor = found ? this.time(event.offsetX) : null;
    if (found)
      tip.show(describePoint(this.plan, found, this), event.clientX, event.clientY);
    else
      tip.hide();
    redraw();
  }

  leave() {
    view.hovered = null;
    view.cursor = null;
    tip.hide();
    redraw();
  }

  // Keys.

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const time = (view.x1 - view.x0) / 8;
    const addresses = (view.y1 - view.y0) / 8;
    const keys = {
      ArrowLeft: () => view.pan(-time, 0),
      ArrowRight: () => view.pan(time, 0),
      ArrowUp: () => view.pan(0, addresses),
      ArrowDown: () => view.pan(0, -addresses),
      '+': () => view.zoomTime(0.7),
      '=': () => view.zoomTime(0.7),
      '-': () => view.zoomTime(1 / 0.7),
      ']': () => view.zoomAddresses(0.7),
      '[': () => view.zoomAddresses(1 / 0.7),
      0: () => view.all(),
      Home: () => view.all(),
      ',': () => this.walk(-1),
      '.': () => this.walk(1),
      Enter: () => selected.box && this.zoomTo(selected.box),
      Escape: () => select(null, this.plan, null),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  /** To the next or previous box in time. */
  walk(by) {
    const boxes = this.plan.residencesNow;
    if (!boxes.length) return;
    const now = boxes.indexOf(selected.box);
    const next =
        now < 0 ? (by > 0 ? 0 : boxes.length - 1) : (now + by + boxes.length) % boxes.length;
    select(boxes[next].buffer, this.plan, boxes[next]);
    this.keepInSight(boxes[next]);
  }

  keepInSight(box) {
    const edges = view.edges(this.plan);
    const [from, to] = [edges[box.begin], edges[box.end]];
    if (to <= view.x0 || from >= view.x1) {
      const span = view.x1 - view.x0;
      view.setTime((from + to - span) / 2, (from + to + span) / 2);
    }
    if (box.offset + box.bytes <= view.y0 || box.offset >= view.y1) {
      const span = view.y1 - view.y0;
      view.setAddresses(
          box.offset + box.bytes / 2 - span / 2, box.offset + box.bytes / 2 + span / 2);
    }
  }

  zoomTo(box) {
    view.reveal(this.plan, box.begin, box.end);
    view.setAddresses(box.offset - box.bytes, box.offset + 2 * box.bytes);
  }
}
