// What is said about a point, a buffer and the colours: tip, card, legend, search.

const selected = {
  box: null
};

const tip = {
  show(lines, x, y) {
    const node = byId('tip');
    node.replaceChildren(
        ...lines.map((line, i) => element(i ? 'div' : 'strong', {textContent: line})));
    node.hidden = false;
    const {offsetWidth: width, offsetHeight: height} = node;
    node.style.left = `${Math.max(4, Math.min(x + 14, window.innerWidth - width - 8))}px`;
    node.style.top =
        `${y + 18 + height > window.innerHeight ? Math.max(4, y - height - 12) : y + 18}px`;
  },
  hide() {
    byId('tip').hidden = true;
  },
};

const ticksText = (begin, end) =>
    `ticks ${begin.toLocaleString('en-US')} to ${end.toLocaleString('en-US')}`;
const spanText = (plan, begin, end) =>
    `${shortTime(plan.starts[begin])} to ${shortTime(plan.starts[end])}`;
const tripsText = tick => {
  const trips = PROGRAM.instructions.trips[tick];
  return trips > 1 ? `, ${trips.toLocaleString('en-US')} times` : '';
};

/** Who makes a buffer, in words. */
function producerOf(buffer) {
  const first = ACCESSES_OF[buffer].find(access => PROGRAM.accesses.kind[access] === WRITE);
  if (PROGRAM.buffers.origin[buffer] || first === undefined)
    return ORIGINS[PROGRAM.buffers.origin[buffer]];
  return `made by ${instructionName(PROGRAM.accesses.tick[first])}`;
}

/** Lines for the tip, the first of them a heading. */
function describePoint(plan, {panel, tick, box, copy}, picture) {
  if (box) {
    const users = ACCESSES_OF[box.buffer]
                      .filter(access => PROGRAM.accesses.kind[access] !== WRITE)
                      .map(access => instructionName(PROGRAM.accesses.tick[access]));
    return [
      bufferName(box.buffer),
      `${shortBytes(box.bytes)} at offset ${shortBytes(box.offset)}, ${KINDS[box.kind].name}`,
      `${ticksText(box.begin, box.end)} (${spanText(plan, box.begin, box.end)})`,
      producerOf(box.buffer),
      `used by ${users.slice(0, 4).join(', ') || 'nobody'}${
          users.length > 4 ? ` and ${users.length - 4} more` : ''}`,
    ];
  }
  if (copy) {
    return [
      `${copy.kind === PREFETCH ? 'Prefetch' : 'Eviction'} of ${bufferName(copy.buffer)}`,
      shortBytes(copy.bytes),
      `window: ${ticksText(copy.begin, copy.end)}`,
      `takes ${shortTime(copy.bytes / 2 ** 20 * HARDWARE.copy_ps_per_mib)} of the channel`,
      ...(copy.replaces >= 0 ? [`instead of the instruction ${instructionName(copy.replaces)}`] :
                               []),
    ];
  }
  const number = tick.toLocaleString('en-US');
  const {names, of} = groups.shown;
  const lines = [
    instructionName(tick), `tick ${number}, ${opcodeOf(tick)}${tripsText(tick)}`,
    ...(picture.withBand ? [`${groups.shown.by} ${names[of[tick]]}`] : [])
  ];
  if (panel === picture.loss) {
    const loss = ({label, sums}) => `${label} ${shortTime(sums[tick + 1] - LEAST_SUM[tick + 1])}`;
    return [...lines, 'above the bound so far:', ...panel.curves.map(loss)];
  }
  lines.push(
      `runs ${shortTime(plan.compute[tick])}; all in main memory ${shortTime(DATA.main_ps[tick])}`);
  if (plan.stall[tick]) lines.push(`waits ${shortTime(plan.stall[tick])} for copies before`);
  lines.push(`leaves ${shortTime(plan.idle[tick])} of the channel, copies use ${
      shortTime(plan.copied[tick])}`);
  return lines;
}

/** Makes a buffer (null: none) the selected one; `box` says which of its stays. */
function select(buffer, plan, box) {
  view.selected = buffer;
  selected.box = box;
  const card = byId('selected');
  const nothing =
      element('p', {className: 'quiet', textContent: 'Nothing: click a box, or search.'});
  card.replaceChildren(...(buffer === null ? [nothing] : describeBuffer(buffer, plan, box)));
  redraw();
}

function facts(pairs) {
  const list = element('dl', {className: 'facts'});
  for (const [name, value] of pairs) {
    list.append(element('dt', {textContent: name}), element('dd', {textContent: value}));
  }
  return list;
}

const MOST_ACCESSES = 200;

function describeBuffer(buffer, plan, box) {
  const boxes = plan.boxesOf(buffer);
  const bytes = bufferBytes(buffer);
  const pairs = [
    ['Size', `${shortBytes(bytes)} (${bytes.toLocaleString('en-US')} B)`],
    [
      'Origin',
      producerOf(buffer) + (PROGRAM.buffers.output[buffer] ? '; a result of the program' : '')
    ],
  ];
  if (box) {
    pairs.push(
        ['Stay', `${ticksText(box.begin, box.end)}, ${spanText(plan, box.begin, box.end)}`],
        ['Offset', `${box.offset.toLocaleString('en-US')} B`], ['Kind', KINDS[box.kind].text]);
  }
  pairs.push(
      ['Stays', boxes.length ? `${boxes.length} in fast memory` : 'none: always in main memory']);
  return [
    element('p', {className: 'name', textContent: bufferName(buffer)}), facts(pairs),
    accessTable(buffer, plan)
  ];
}

function accessTable(buffer, plan) {
  const accesses = ACCESSES_OF[buffer];
  const head = ['tick', 'instruction', 'access', 'from'].map(
      name => element('th', {scope: 'col', textContent: name}));
  const rows = accesses.slice(0, MOST_ACCESSES).map(access => {
    const tick = PROGRAM.accesses.tick[access];
    const go = element('button', {className: 'link', textContent: tick.toLocaleString('en-US')});
    go.onclick = () => view.reveal(plan, tick, tick + 1);
    go.setAttribute('aria-label', `Show tick ${tick}`);
    return element(
        'tr', {}, element('td', {}, go), element('td', {textContent: instructionName(tick)}),
        element('td', {textContent: ACCESS_KINDS[PROGRAM.accesses.kind[access]]}),
        element('td', {textContent: plan.served[access] >= 0 ? 'fast' : 'main'}));
  });
  const table = element(
      'table', {}, element('caption', {className: 'quiet', textContent: 'Accesses, in time order'}),
      element('thead', {}, element('tr', {}, ...head)), element('tbody', {}, ...rows));
  const scroll = element('div', {className: 'scroll', tabIndex: 0}, table);
  scroll.setAttribute('role', 'region');
  scroll.setAttribute('aria-label', `Accesses to ${bufferName(buffer)}`);
  const more = accesses.length - MOST_ACCESSES;
  if (more > 0) scroll.append(element('p', {className: 'quiet', textContent: `and ${more} more`}));
  return scroll;
}

function drawLegend() {
  const item = (swatch, words, title = '') =>
      element('li', {title}, swatch, element('span', {textContent: words}));
  const box = colour => element('span', {className: 'swatch', style: `background:${colour}`});
  const line = colour =>
      element('span', {className: 'swatch line', style: `border-color:${colour}`});
  const size = i => (i < SIZE_LIMITS.length ? `under ${shortBytes(SIZE_LIMITS[i])}` : 'larger');
  const items = view.colour === 'kind' ?
      KINDS.map(kind => item(box(`var(${kind.colour})`), kind.name, kind.text)) :
      SIZE_COLOURS.map((colour, i) => item(box(colour), size(i)));
  if (ANY_RESERVED) {
    items.push(item(box('var(--hatch)'), 'reserved', 'by the instruction for itself'));
  }
  items.push(
      item(box('var(--idle)'), 'channel idle'), item(box('var(--used)'), 'used by copies'),
      item(box('var(--stall)'), 'waiting'),
      ...pictures[0].loss.curves.map(({label, colour}) => item(line(`var(--${colour})`), label)));
  byId('legend').replaceChildren(...items);
}

// Search.

const MOST_FOUND = 30;

/**
 * Buffers and instructions whose names hold the text: those that begin with it first, large buffers
 * before small ones.
 */
function find(wanted) {
  const low = wanted.toLowerCase();
  const found = [];
  PROGRAM.buffers.name.forEach((name, buffer) => {
    const at = name.toLowerCase().indexOf(low);
    if (at >= 0 && ACCESSES_OF[buffer].length)
      found.push({at: at > 0, bytes: bufferBytes(buffer), name, buffer});
  });
  PROGRAM.instructions.name.forEach((name, tick) => {
    const at = name.toLowerCase().indexOf(low);
    if (at >= 0) found.push({at: at > 0, bytes: -1, name, tick});
  });
  return found.sort((a, b) => a.at - b.at || b.bytes - a.bytes).slice(0, MOST_FOUND);
}

function showFound({buffer, tick}) {
  const plan = PLANS[0];
  if (tick !== undefined) {
    view.reveal(plan, tick, tick + 1);
    return;
  }
  const [box] = plan.boxesOf(buffer);
  select(buffer, plan, box || null);
  const at = PROGRAM.accesses.tick[ACCESSES_OF[buffer][0]];
  if (box)
    view.reveal(plan, box.begin, box.end);
  else
    view.reveal(plan, at, at + 1);
  view.setAddresses(0, USED_BYTES);
}

function describeFound({buffer, tick, bytes}) {
  if (tick !== undefined) return `instruction at tick ${tick}`;
  return `${shortBytes(bytes)}, ${
      PLANS[0].boxesOf(buffer).length ? 'in fast memory' : 'in main memory'}`;
}

function listenToSearch() {
  const input = byId('search');
  const list = byId('found');
  let results = [];
  let active = -1;
  const close = () => {
    list.hidden = true;
    input.setAttribute('aria-expanded', 'false');
    input.removeAttribute('aria-activedescendant');
  };
  const mark = index => {
    active = index;
    [...list.children].forEach(
        (node, i) => node.setAttribute('aria-selected', String(i === index)));
    if (index >= 0) {
      input.setAttribute('aria-activedescendant', `found-${index}`);
      list.children[index].scrollIntoView({block: 'nearest'});
    }
  };
  const choose = index => {
    if (!results[index]) return;
    showFound(results[index]);
    close();
  };
  const option = (one, i) => {
    const node = element(
        'li', {id: `found-${i}`}, one.name, ' ',
        element('small', {textContent: describeFound(one)}));
    node.setAttribute('role', 'option');
    node.addEventListener('pointerdown', event => {
      event.preventDefault();
      choose(i);
    });
    return node;
  };
  const nothing = () => {
    const node = element('li', {textContent: 'nothing of that name'});
    node.setAttribute('role', 'option');
    node.setAttribute('aria-disabled', 'true');
    return node;
  };
  input.addEventListener('input', () => {
    const wanted = input.value.trim();
    results = wanted ? find(wanted) : [];
    list.replaceChildren(...(wanted && !results.length ? [nothing()] : results.map(option)));
    list.hidden = !wanted;
    input.setAttribute('aria-expanded', String(!list.hidden));
    mark(results.length ? 0 : -1);
  });
  input.addEventListener('keydown', event => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      if (results.length)
        mark((active + (event.key === 'ArrowDown' ? 1 : -1) + results.length) % results.length);
    } else if (event.key === 'Enter')
      choose(active);
    else if (event.key === 'Escape')
      close();
  });
  input.addEventListener('blur', close);
}
