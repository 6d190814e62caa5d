// Names and colours of bars and spans.

const WORDS = {
  F: ['forward', 'forward'],
  B: ['backward', 'backward'],
  I: ['gradients of inputs', 'inputs'],
  W: ['gradients of weights', 'weights'],
  UP: ['update of bucket', 'update'],
  SA: ['hands an activation over', 'transfer'],
  RA: ['takes an activation', 'transfer'],
  SG: ['hands a gradient over', 'transfer'],
  RG: ['takes a gradient', 'transfer'],
  AR: ['all-reduce of bucket', 'comm'],
  RU: ['all-reduce and update of bucket', 'comm'],
  LR: ['all-reduce of the loss', 'comm'],
  NR: ['all-reduce of the gradients\' norm', 'comm'],
  graph: ['recorded step', 'graph'],
};

// Colours of spans, indexed by their number in the data.
const SPAN_COLORS = [
  'forward', 'backward', 'update', 'transfer', 'graph', 'exposed', 'waiting',
  'waiting', 'waiting', 'waiting', 'done', 'other'];
const FIRST_IDLE_SPAN = 5;

function colorOf(word) {
  return 'var(--' + (WORDS[word] || WORDS.graph)[1] + ')';
}

function isOfBucket(word) {
  return word === 'UP' || word === 'AR' || word === 'RU';
}

function isNumbered(word) {
  return word !== 'LR' && word !== 'NR' && word !== 'graph';
}

// Returns "1F3", as in tables of actions.
function labelOf(word, chunk, index) {
  if (!isNumbered(word)) return word;
  return (chunk > 0 ? chunk : '') + word + index;
}

// Returns "forward of micro-batch 3, chunk 1".
function sentenceOf(word, chunk, index) {
  const what = (WORDS[word] || [word])[0];
  if (!isNumbered(word)) return what;
  const number = isOfBucket(word) ? ' ' + index
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
  for (const word of words) seen.add((WORDS[word] || WORDS.graph)[1]);
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
