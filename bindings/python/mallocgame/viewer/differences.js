// Two plans of one program: the instructions at which their times differ most, and why. Differences
// over all ticks add up to the difference of the latencies.

const MOST_DIFFERENCES = 60;

/**
 * {tick, ps} with ps = time under the second plan less that under the first, largest first; zeros
 * are left out.
 */
function differencesOf(first, second) {
  const list = [];
  for (let tick = 0; tick < TICKS; ++tick) {
    const ps = second.spent[tick] - first.spent[tick];
    if (ps !== 0) list.push({tick, ps});
  }
  return list.sort((a, b) => Math.abs(b.ps) - Math.abs(a.ps) || a.tick - b.tick);
}

/** What the two plans do differently at a tick, in words. */
function reasonsAt(first, second, tick) {
  const reasons = [];
  const {first: begin, count} = PROGRAM.instructions;
  const only = [[], []];
  for (let access = begin[tick]; access < begin[tick] + count[tick]; ++access) {
    const fast = [first, second].map(plan => plan.served[access] >= 0);
    if (fast[0] !== fast[1]) only[fast[0] ? 0 : 1].push(PROGRAM.accesses.buffer[access]);
  }
  [first, second].forEach((plan, i) => {
    const buffers = only[i].sort((a, b) => bufferBytes(b) - bufferBytes(a));
    const words = buffers.slice(0, 3)
                      .map(buffer => `${bufferName(buffer)} (${shortBytes(bufferBytes(buffer))})`)
                      .join(', ');
    const more = buffers.length > 3 ? ` and ${buffers.length - 3} more` : '';
    if (words) reasons.push(`${plan.label} alone has ${words}${more} in fast memory`);
    if (plan.copies.some(copy => copy.replaces === tick))
      reasons.push(`${plan.label} replaces this copy`);
  });
  const stall = second.stall[tick] - first.stall[tick];
  if (stall)
    reasons.push(
        `${stall > 0 ? second.label : first.label} waits ${shortTime(Math.abs(stall))} more`);
  return reasons.length ? reasons.join('; ') : 'other placements before it';
}

function showDifferences() {
  const [first, second] = PLANS;
  const list = differencesOf(first, second);
  const total = second.report.latency_ps - first.report.latency_ps;
  byId('differences').hidden = false;
  const count = list.length.toLocaleString('en-US');
  const better = total === 0 ? `${first.label} and ${second.label} take the same time.` :
                               `${total > 0 ? first.label : second.label} is faster by ${
                                   exactTime(Math.abs(total))} in all, ` +
          `over ${count} instructions that differ.`;
  byId('differences-text').textContent = list.length ?
      `${better} Here are those that matter most.` :
      `${better} No instruction differs in time.`;
  byId('differences-list').replaceChildren(...list.slice(0, MOST_DIFFERENCES).map(({tick, ps}) => {
    const button = element(
        'button', {}, element('span', {
          className: `amount ${ps > 0 ? 'first' : 'second'}`,
          textContent: exactTime(Math.abs(ps))
        }),
        ` less under ${(ps > 0 ? first : second).label}: ${instructionName(tick)}${
            tripsText(tick)}`,
        element('div', {className: 'why', textContent: reasonsAt(first, second, tick)}));
    button.addEventListener('click', () => {
      view.reveal(first, tick, tick + 1);
      view.cursor = (view.edges(first)[tick] + view.edges(first)[tick + 1]) / 2;
    });
    return element('li', {}, button);
  }));
}
