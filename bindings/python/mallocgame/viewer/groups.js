// Layers, named scopes and opcodes: the band above the pictures that says which of them runs when,
// and the table of where the time goes.

const BAND_COLOURS = ['#3b6fb6', '#2a808c', '#2b8756', '#7d8420', '#b8740f', '#8b5fb0'];

const SUMS = ['spent', 'stall', 'bytes'];
const nothing = () => Object.fromEntries(SUMS.map(name => [name, PLANS.map(() => 0)]));

/** How instructions are told together: `of` has the group of each tick, `runs` those in a row. */
class Grouping {
  constructor({by, names, together, of}) {
    this.by = by;
    this.names = names;
    this.of = of;
    this.runs = [];
    for (let tick = 0; tick < TICKS; ++tick) {
      const last = this.runs[this.runs.length - 1];
      if (last && last.group === of[tick])
        last.end = tick + 1;
      else
        this.runs.push({group: of[tick], begin: tick, end: tick + 1});
    }
    this.rows = this.sum(together);
  }

  /** What is spent in each group under each plan, groups that repeat together, largest first. */
  sum(together) {
    const groups =
        this.names.map((name, group) => ({name, group, begin: TICKS, end: 0, ...nothing()}));
    for (let tick = 0; tick < TICKS; ++tick) {
      const row = groups[this.of[tick]];
      row.begin = Math.min(row.begin, tick);
      row.end = tick + 1;
      PLANS.forEach((plan, i) => {
        row.spent[i] += plan.spent[tick];
        row.stall[i] += plan.stall[tick];
        row.bytes[i] += plan.mainBytes[tick];
      });
    }
    const rows = new Map();
    groups.forEach((one, group) => {
      const name = together[group];
      if (!rows.has(name)) rows.set(name, {name, parts: [], ...nothing()});
      const row = rows.get(name);
      row.parts.push(one);
      for (const sums of SUMS)
        PLANS.forEach((_, i) => {
          row[sums][i] += one[sums][i];
        });
    });
    return [...rows.values()]
        .map(row => (row.parts.length > 1 ? row : row.parts[0]))
        .sort((a, b) => b.spent[0] - a.spent[0]);
  }
}

const groups = {
  all: DATA.groups.map(one => new Grouping(one)),
  shown: null,   // the grouping
  marked: null,  // a group, or null

  show(by) {
    this.shown = this.all.find(one => one.by === by);
    this.marked = null;
    for (const picture of pictures) picture.resize();
    byId('groups-table').replaceChildren(...this.tables());
    redraw();
  },

  mark(row) {
    this.marked = row.group;
    view.reveal(PLANS[0], row.begin, row.end);
  },

  tables() {
    const share = row => (100 * row.spent[0] / PLANS[0].report.latency_ps).toFixed(1);
    const heads = ['', ...PLANS.map(plan => plan.label), '%'];
    const line = (row, inside) => {
      const name = element('button', {className: 'link', textContent: row.name});
      const title = PLANS.map(
          (plan, i) => `${plan.label}: waits ${shortTime(row.stall[i])}, moves ${
              shortBytes(row.bytes[i])} of main memory`);
      const made = element(
          'tr', {className: inside ? 'inside' : '', title: title.join('\n')},
          element('td', {}, name),
          ...row.spent.map(ps => element('td', {className: 'number', textContent: shortTime(ps)})),
          element('td', {className: 'number', textContent: share(row)}));
      name.onclick = () => this.mark(row);
      return made;
    };
    const body = element('tbody');
    for (const row of this.shown.rows.slice(0, MOST_GROUPS)) {
      body.append(line(row, false));
      if (!row.parts) continue;
      const inside = row.parts.slice(0, MOST_GROUPS).map(part => line(part, true));
      for (const one of inside) one.hidden = true;
      const button = body.lastChild.querySelector('button');
      button.textContent = `${row.name} × ${row.parts.length}`;
      button.setAttribute('aria-expanded', 'false');
      button.onclick = () => {
        for (const one of inside) one.hidden = !one.hidden;
        button.setAttribute('aria-expanded', String(!inside[0].hidden));
      };
      body.append(...inside);
    }
    const head = heads.map(
        (name, i) => element(
            'th',
            {scope: 'col', className: i ? 'number' : '', textContent: name || this.shown.by}));
    return [element('thead', {}, element('tr', {}, ...head)), body];
  },
};

const MOST_GROUPS = 200;

class BandPanel {
  constructor(plan) {
    this.plan = plan;
  }

  draw(frame) {
    const {context} = frame;
    const {runs, names} = groups.shown;
    const edges = view.edges(this.plan);
    context.font = FONT;
    const first = intervalAt(edges, view.x0);
    const pixel = (view.x1 - view.x0) / (frame.right - frame.left);
    const last = firstRun(runs, intervalAt(edges, view.x1));
    for (let at = firstRun(runs, first); at <= last;) {
      // Of runs that share a pixel the one in its middle is drawn.
      const begin = edges[runs[at].begin];
      let run = runs[at];
      let next = at + 1;
      if (edges[run.end] - begin < pixel) {
        run = runs[firstRun(runs, intervalAt(edges, begin + pixel / 2))];
        next = Math.max(next, firstRun(runs, intervalAt(edges, begin + pixel)));
      }
      at = next;
      const end = next <= last ? edges[runs[next].begin] : edges[runs[last].end];
      const [left, right] = [frame.x(begin), frame.x(end)];
      const {group} = run;
      if (names[group].startsWith('(')) continue;
      context.globalAlpha = groups.marked === null || groups.marked === group ? 1 : 0.3;
      context.fillStyle = BAND_COLOURS[group % BAND_COLOURS.length];
      const width = Math.max(1, right - left);
      context.fillRect(left, this.top, width > 4 ? width - 1 : width, this.bottom - this.top);
      context.globalAlpha = 1;
      const [from, to] = [Math.max(left, frame.left), Math.min(right, frame.right)];
      if (to - from > 40)
        text(
            frame, shortened(context, names[group], to - from - 8), from + 4,
            (this.top + this.bottom) / 2, '#ffffff');
    }
  }

  drawWords(frame) {
    besides(frame, this, groups.shown.by, (this.top + this.bottom) / 2);
  }
}

/** The run that a tick lies in. */
function firstRun(runs, tick) {
  let low = 0;
  let high = runs.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (runs[middle].begin <= tick)
      low = middle;
    else
      high = middle;
  }
  return low;
}

function showGroups() {
  const select = byId('groups-by');
  for (const {by} of groups.all) select.append(element('option', {value: by, textContent: by}));
  select.onchange = () => groups.show(select.value);
  groups.show(groups.all[0].by);
}
