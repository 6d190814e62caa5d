// Names and colours of bars and spans.

const GRAPH = ['recorded step', 'graph', 'step'];

// Returns what an action does, its colour, and what its index counts.
function kindOf(word) {
  return word === 'graph' ? GRAPH : DATA.words[word];
}

// Colours of spans, indexed by their number in the data.
const SPAN_COLORS = [
  'forward', 'backward', 'update', 'transfer', 'graph', 'exposed', 'waiting',
  'waiting', 'waiting', 'waiting', 'done', 'other'];
const FIRST_IDLE_SPAN = 5;

function colorOf(word) {
  return 'var(--' + kindOf(word)[1] + ')';
}

// Returns "1F3", as in tables of actions.
function labelOf(word, chunk, index) {
  if (kindOf(word)[2] === 'step') return word;
  return (chunk > 0 ? chunk : '') + word + index;
}

// Returns "forward of micro-batch 3, chunk 1".
function sentenceOf(word, chunk, index) {
  const [what, , counted] = kindOf(word);
  if (counted === 'step') return what;
  const number = counted === 'bucket' ? ' ' + index
                                      : ' of micro-batch ' + index;
  return what + number + (chunk > 0 ? ', chunk ' + chunk : '');
}

function drawLegend(into, words, spans, isLate, hasPath) {
  into.replaceChildren();
  const add = (color, text, outlined) => {
    const item = htmlElement('span');
    const swatch = htmlElement('i', 'swatch' + (outlined ? ' outline' : ''));
    if (color) swatch.style.background = color;
    item.append(swatch, text);
    into.append(item);
  };
  const names = {
    forward: 'forward', backward: 'backward', inputs: 'gradients of inputs',
    weights: 'gradients of weights', update: 'update', transfer: 'transfer',
    graph: 'recorded step', comm: 'collective',
    exposed: 'exposed communication',
    waiting: 'waiting', done: 'done, others are not', other: 'between actions'};
  const seen = new Set();
  for (const word of words) seen.add(kindOf(word)[1]);
  for (const span of spans) seen.add(SPAN_COLORS[span]);
  if (seen.has('inputs')) seen.delete('backward');
  for (const key in names) {
    if (seen.has(key)) add('var(--' + key + ')', names[key], false);
    if (key === 'comm' && isLate) {
      add('var(--comm-wait)', 'launched, others are late', false);
    }
  }
  if (hasPath) add('', 'critical path', true);
}
