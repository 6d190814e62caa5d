// Shows the critical path: a sentence on its composition, and its parts.

const PATH_ROWS_MAX = 2000;

// Returns the time of each kind of part on the path, the longest first.
function pathParts(step) {
  const times = new Map();
  const add = (name, time) => times.set(name, (times.get(name) || 0) + time);
  for (const [, word, , , begin, end, handover] of step.path) {
    add(kindOf(word)[0].replace(/ of bucket$/, ''), end - begin);
    add('between its parts', handover);
  }
  return [...times].filter((part) => part[1] > 0)
      .sort((a, b) => b[1] - a[1]);
}

function drawPathTable(step, names) {
  const parts = pathParts(step).filter((part) => part[1] >= 5e-4 * step.length);
  const text = parts.map(
      ([name, time]) => name + ' ' + formatShare(time / (step.length || 1)));
  const ranks = new Set(step.path.map((part) => part[0]));
  const where = ranks.size === 1 ? '1 rank' : `${ranks.size} ranks`;
  byId('path-summary').textContent = step.path.length === 0 ? 'None.' :
      `${step.path.length} parts on ${where}. Of the step: ${text.join(', ')}.`;
  byId('path-details').hidden = step.path.length === 0;
  const table = byId('path');
  table.replaceChildren();
  const head = htmlElement('tr');
  for (const [name, kind] of [
    ['from', ''], ['to', ''], ['takes', ''], ['after', ''], ['', 'text'],
    ['', 'text'], ['', 'text']]) {
    head.append(htmlElement('th', kind, name));
  }
  table.append(head);
  for (const part of step.path.slice(0, PATH_ROWS_MAX)) {
    const [rank, word, chunk, index, begin, end, handover] = part;
    const row = htmlElement('tr', 'path-part');
    for (const time of [begin, end, end - begin]) {
      row.append(htmlElement('td', '', formatTime(time)));
    }
    row.append(htmlElement('td', '', handover > 0 ? formatTime(handover) : ''));
    row.append(htmlElement('td', 'text', names[rank]));
    row.append(htmlElement('td', 'text', labelOf(word, chunk, index)));
    row.append(htmlElement('td', 'text', sentenceOf(word, chunk, index)));
    table.append(row);
  }
}
