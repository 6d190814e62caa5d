// Draws the curves of the run by step: one chart for each quantity.

const CURVES = [
  ['loss', 'Loss', formatNumber],
  ['accuracy', 'Accuracy', formatShare],
  ['samples_per_s', 'Throughput, samples/s', formatNumber],
  ['lr', 'Learning rate', formatNumber],
  ['grad_norm', 'Norm of the gradients', formatNumber],
  ['peak_bytes', 'Peak memory of a rank', formatBytes],
];

function drawCurves(into) {
  into.replaceChildren();
  const {train, evaluation} = DATA.metrics;
  const charts = [];
  for (const [key, title, format] of CURVES) {
    if (!train[key]) continue;
    const chart = htmlElement('div');
    const values = train[key].filter((value) => value !== null);
    const head = htmlElement('h3', '', title);
    const last = htmlElement('span', 'last');
    if (evaluation[key]) {
      last.append(dot('var(--accent)'), 'training  ',
                  dot('var(--curve-2)'), 'test  ');
    }
    last.append('last ' + format(values[values.length - 1]));
    head.append(last);
    chart.append(head);
    const canvas = htmlElement('div', 'chart');
    chart.append(canvas);
    into.append(chart);
    const series = [{
      name: evaluation[key] ? 'training' : title, steps: train.step,
      values: train[key], color: 'var(--accent)'}];
    if (evaluation[key]) {
      series.push({
        name: 'test', steps: evaluation.step, values: evaluation[key],
        color: 'var(--curve-2)', dots: true});
    }
    charts.push(() => drawCurve(canvas, key, title, series, format));
  }
  // The width of a chart depends on the number of charts.
  for (const draw of charts) draw();
  byId('run').hidden = into.children.length === 0;
}

function dot(color) {
  const swatch = htmlElement('i', 'dot');
  swatch.style.background = color;
  return swatch;
}

// Returns the least and the greatest value that is shown, with a margin.
function rangeOf(series, fromZero) {
  const values = series.flatMap((s) => s.values).filter((v) => v !== null);
  let low = values.reduce((a, b) => Math.min(a, b), Infinity);
  let high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  if (fromZero && low > 0) low = 0;
  if (low === high) [low, high] = [low - (Math.abs(low) || 1) * 0.5,
                                   high + (Math.abs(high) || 1) * 0.5];
  const room = (high - low) * 0.05;
  return [fromZero && low === 0 ? 0 : low - room, high + room];
}

function drawCurve(into, key, title, series, format) {
  const width = widthOf(into);
  const height = 170;
  const [left, right, top] = [64, width - 10, 6];
  const fromZero = key === 'samples_per_s' || key === 'peak_bytes' ||
      key === 'lr';
  const [low, high] = rangeOf(series, fromZero);
  const steps = series.flatMap((s) => s.steps);
  const first = Math.min(...steps);
  const last = Math.max(...steps);
  const x = (step) =>
      left + (step - first) / Math.max(last - first, 1) * (right - left);
  const y = (value) => height - (value - low) / (high - low) * (height - top);
  const svg = svgElement('svg', {
    viewBox: `0 0 ${width} ${height + 20}`, height: height + 20, role: 'img',
    'aria-label': title + ' over the steps'});
  const ticks = key === 'peak_bytes'
      ? ticksOf(low, high, 4, byteUnit(high))
      : ticksBetween(low, high, 4).map((tick) => [tick, format(tick)]);
  for (const [tick, text] of ticks) {
    svg.append(svgElement('line', {
      x1: left, x2: right, y1: y(tick), y2: y(tick), class: 'axis'}));
    svg.append(svgElement('text', {
      x: left - 7, y: y(tick) + 4, 'text-anchor': 'end'}, text));
  }
  for (const tick of ticksBetween(first, last, 5)) {
    if (tick !== Math.round(tick)) continue;
    const anchor = x(tick) > right - 20 ? 'end' : 'middle';
    svg.append(svgElement('text', {
      x: x(tick), y: height + 16, 'text-anchor': anchor},
      tick.toLocaleString('en-US')));
  }
  for (const each of series) addSeries(svg, each, x, y);
  into.replaceChildren(svg);
  hoverCurve(svg, series, {left, right, width, height, first, last, x, y},
             format);
}

// Adds a curve; a missing value leaves a gap.
function addSeries(svg, series, x, y) {
  let path = '';
  let pen = false;
  series.values.forEach((value, i) => {
    if (value === null) {
      pen = false;
      return;
    }
    path += `${pen ? 'L' : 'M'}${x(series.steps[i]).toFixed(1)} ` +
        y(value).toFixed(1);
    pen = true;
  });
  svg.append(svgElement('path', {
    d: path, class: 'curve series', stroke: series.color}));
  const few = series.values.length <= 60;
  if (!series.dots && series.values.length > 1) return;
  if (!few) return;
  series.values.forEach((value, i) => {
    if (value === null) return;
    svg.append(svgElement('circle', {
      cx: x(series.steps[i]).toFixed(1), cy: y(value).toFixed(1), r: 2.6,
      fill: series.color}));
  });
}

function nearestIndex(steps, step) {
  let best = 0;
  for (let i = 1; i < steps.length; ++i) {
    if (Math.abs(steps[i] - step) < Math.abs(steps[best] - step)) best = i;
  }
  return best;
}

function hoverCurve(svg, series, at, format) {
  const line = svgElement('line', {
    y1: 0, y2: at.height, class: 'cursor', visibility: 'hidden'});
  svg.append(line);
  svg.addEventListener('mousemove', (event) => {
    const box = svg.getBoundingClientRect();
    const px = (event.clientX - box.left) * at.width / box.width;
    const step = at.first + (px - at.left) / (at.right - at.left) *
        (at.last - at.first);
    const train = series[0];
    const shown = train.steps[nearestIndex(train.steps, step)];
    line.setAttribute('x1', at.x(shown));
    line.setAttribute('x2', at.x(shown));
    line.setAttribute('visibility', 'visible');
    const lines = ['step ' + shown.toLocaleString('en-US')];
    for (const each of series) {
      const i = nearestIndex(each.steps, shown);
      const where = each.steps[i] === shown ? '' :
          ` (after step ${each.steps[i].toLocaleString('en-US')})`;
      lines.push(`${each.name}: ${format(each.values[i])}${where}`);
    }
    showTooltip(event, lines);
  });
  svg.addEventListener('mouseleave', () => {
    hideTooltip();
    line.setAttribute('visibility', 'hidden');
  });
}
