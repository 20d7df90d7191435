// The document, with what the page works out of it once: accesses by buffer, running times, the
// words for it all.

const DATA = JSON.parse(document.getElementById('data').textContent);
const PROGRAM = DATA.program;
const HARDWARE = DATA.hardware;
const GAME = DATA.game;
const TICKS = PROGRAM.ticks;

const ACCESS_KINDS = ['read', 'update', 'write', 'loop entry'];
const WRITE = 2;
const ORIGINS =
    ['made by an instruction', 'entry parameter', 'constant', 'storage without a value'];
const KINDS = [
  {name: 'preloaded', colour: '--preloaded', text: 'preloaded: there before the program starts'},
  {name: 'prefetched', colour: '--prefetched', text: 'prefetched from main memory'},
  {name: 'evicted', colour: '--evicted', text: 'made here, then evicted to main memory'},
  {
    name: 'only in fast memory',
    colour: '--only-fast',
    text: 'made here and used here, never in main memory'
  },
];
const PREFETCH = 0;

const byId = id => document.getElementById(id);

/** A new element with text and children; names come from files, so text never becomes markup. */
function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** [0, v0, v0 + v1, ...] */
function runningSum(values) {
  const sums = new Float64Array(values.length + 1);
  values.forEach((value, i) => {
    sums[i + 1] = sums[i] + value;
  });
  return sums;
}

// Figures. All are whole numbers of picoseconds below 2^53 (two and a half hours), which a double
// holds exactly.

/** Rounds to so many digits. Making a format takes much longer than using it. */
const [fourDigits, sixDigits] =
    [4, 6].map(digits => new Intl.NumberFormat('en-US', {maximumSignificantDigits: digits}));

function shortTime(ps) {
  const size = Math.abs(ps);
  for (const [unit, one] of [['s', 1e12], ['ms', 1e9], ['µs', 1e6], ['ns', 1e3]]) {
    const digits = size < 1e4 * one ? fourDigits : sixDigits;
    if (size >= one) return `${digits.format(ps / one)} ${unit}`;
  }
  return `${Math.round(ps)} ps`;
}
const exactTime = ps => `${ps.toLocaleString('en-US')} ps`;
function shortBytes(bytes) {
  for (const [unit, one] of [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]]) {
    if (bytes >= one) return `${fourDigits.format(bytes / one)} ${unit}`;
  }
  return `${bytes} B`;
}
const ratio = value => `${value.toFixed(value < 10 ? 3 : 1)}×`;

// The program.

const instructionName = tick => (tick < TICKS ? PROGRAM.instructions.name[tick] : 'the end');
const OPCODES = DATA.groups.find(one => one.by === 'opcode');
const opcodeOf = tick => OPCODES.names[OPCODES.of[tick]];
const bufferName = buffer => PROGRAM.buffers.name[buffer];
const bufferBytes = buffer => PROGRAM.buffers.bytes[buffer];

/** Accesses of each buffer, in time order. */
const ACCESSES_OF = PROGRAM.buffers.name.map(() => []);
PROGRAM.accesses.buffer.forEach((buffer, access) => ACCESSES_OF[buffer].push(access));

const ANY_RESERVED = PROGRAM.instructions.reserved.some(bytes => bytes > 0);
const LEAST_SUM = runningSum(DATA.least_ps);
const XLA_SUM = DATA.xla_ps && runningSum(DATA.xla_ps);
const ALL_MAIN_PS = DATA.main_ps.reduce((sum, ps) => sum + ps, 0);
const XLA_PS = XLA_SUM && XLA_SUM[TICKS];

/** Rows out of columns. */
function rowsOf(columns) {
  const names = Object.keys(columns);
  return columns[names[0]].map(
      (_, i) => Object.fromEntries(names.map(name => [name, columns[name][i]])));
}

class PlanModel {
  constructor(data) {
    this.label = data.label;
    this.broken = data.broken;
    this.report = data.report;
    this.served = data.served;
    this.compute = data.times.compute_ps;
    this.stall = data.times.stall_ps;
    this.idle = data.times.idle_ps;
    this.copied = data.times.copied_ps;
    this.mainBytes = data.times.main_bytes;
    this.sums = {};
    for (const name of ['compute', 'stall', 'idle', 'copied'])
      this.sums[name] = runningSum(this[name]);
    this.spent = this.compute.map((ps, tick) => ps + this.stall[tick]);
    this.starts = runningSum(this.spent);
    this.residences = rowsOf(data.residences);
    for (const residence of this.residences) residence.bytes = bufferBytes(residence.buffer);
    this.copies = rowsOf(data.copies).filter(copy => !copy.preload);
    this.show(Infinity);
  }

  /** Shows what is there after `step` decisions; Infinity: at the end. */
  show(step) {
    const there = row => (row.died < 0 ? row.born <= step : row.born <= step && step < row.died);
    this.residencesNow = this.residences.filter(there);
    this.copiesNow = this.copies.filter(there);
    this.lanes = assignLanes(this.copiesNow);
  }

  boxesOf(buffer) {
    return this.residencesNow.filter(residence => residence.buffer === buffer);
  }
}

/** Gives each copy the first lane that is free when it begins; returns their number. */
function assignLanes(copies) {
  const free = [];
  for (const copy of copies) {
    let lane = free.findIndex(end => end <= copy.begin);
    if (lane < 0) lane = free.length;
    free[lane] = Math.max(copy.end, copy.begin + 1);
    copy.lane = lane;
  }
  return free.length;
}

const PLANS = DATA.plans.map(data => new PlanModel(data));
