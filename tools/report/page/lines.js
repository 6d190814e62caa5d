// Draws curves over an axis, with a vertical line under the mouse.

// Returns the colour of a rank; colours change gradually with the rank.
function rankColor(rank, ranks) {
  const hue = ranks <= 1 ? 215 : Math.round(215 + 290 * rank / ranks) % 360;
  return `hsl(${hue} 62% 52%)`;
}

// Returns the path of a step function: a value holds until the next one, and
// the last until `end`.
function stairs(points, scale, y, end) {
  let path = '';
  points.forEach(([at, value], i) => {
    const x = scale.x(Math.max(at, scale.view[0])).toFixed(1);
    path += (i === 0 ? `M${x} ` : `H${x}V`) + y(value).toFixed(1);
  });
  return path + `H${scale.x(Math.min(end, scale.view[1])).toFixed(1)}`;
}

// Returns the value at a time; null before the first one.
function valueAt(points, time) {
  let low = 0;
  let high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] <= time) low = middle + 1; else high = middle;
  }
  return low === 0 ? null : points[low - 1][1];
}

// Returns the samples in a view, with the one that holds at its begin.
function pointsInView(points, view) {
  const inside = points.filter((p) => p[0] > view[0] && p[0] <= view[1]);
  const first = valueAt(points, view[0]);
  return first === null ? inside : [[view[0], first]].concat(inside);
}

function drawMemoryLegend(into, names) {
  into.replaceChildren();
  names.forEach((name, r) => {
    const item = htmlElement('span');
    const swatch = htmlElement('i', 'swatch');
    swatch.style.background = rankColor(r, names.length);
    item.append(swatch, name);
    into.append(item);
  });
}

function drawMemory(into, step, names, scale) {
  const height = 150;
  const width = scale.right + 10;
  const ranks = step.ranks.map((rank) => rank.memory);
  const most = Math.max(...ranks.map(
      (points) => Math.max(0, ...points.map((p) => p[1]))));
  const y = (bytes) => height - 4 - bytes / (most * 1.05 || 1) * (height - 10);
  const svg = svgElement('svg', {
    viewBox: `0 0 ${width} ${height + 20}`, height: height + 20, role: 'img',
    'aria-label': 'memory of each rank during the step'});
  for (const [tick, text] of ticksOf(0, most * 1.05, 4, byteUnit(most))) {
    svg.append(svgElement('line', {
      x1: scale.left, x2: scale.right, y1: y(tick), y2: y(tick),
      class: 'axis'}));
    svg.append(svgElement('text', {
      x: scale.left - 8, y: y(tick) + 4, 'text-anchor': 'end'}, text));
  }
  addTimeAxis(svg, scale, height);
  ranks.forEach((points, r) => {
    const shown = pointsInView(points, scale.view);
    if (shown.length === 0) return;
    svg.append(svgElement('path', {
      d: stairs(shown, scale, y, step.length), class: 'curve memory-of',
      'data-row': r, stroke: rankColor(r, ranks.length)}));
  });
  into.replaceChildren(svg);
  svg.addEventListener('mousemove', (event) => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) * width / box.width;
    if (x < scale.left || x > scale.right) return hideTooltip();
    const time = scale.time(x);
    showTooltip(event, memoryLines(ranks, names, time));
    markNearest(svg, ranks, time, event.clientY - box.top, y);
  });
  svg.addEventListener('mouseleave', () => {
    hideTooltip();
    for (const path of svg.querySelectorAll('.memory-of')) {
      path.classList.remove('faint');
    }
  });
  return svg;
}

function memoryLines(ranks, names, time) {
  const rows = ranks
      .map((points, r) => [names[r], valueAt(points, time)])
      .filter((row) => row[1] !== null);
  const shown = rows.length > 8
      ? rows.slice().sort((a, b) => b[1] - a[1]).slice(0, 8) : rows;
  const lines = shown.map(([name, bytes]) => `${name}: ${formatBytes(bytes)}`);
  const rest = rows.length - shown.length;
  if (rest > 0) lines.push(`and ${rest} that hold less`);
  return ['at ' + formatTime(time)].concat(lines);
}

// Highlights the rank under the mouse if there are four or more.
function markNearest(svg, ranks, time, at, y) {
  if (ranks.length < 4) return;
  let nearest = -1;
  let distance = 12;
  ranks.forEach((points, r) => {
    const value = valueAt(points, time);
    const off = value === null ? Infinity : Math.abs(y(value) - at);
    if (off < distance) [nearest, distance] = [r, off];
  });
  for (const path of svg.querySelectorAll('.memory-of')) {
    path.classList.toggle(
        'faint', nearest >= 0 && Number(path.dataset.row) !== nearest);
  }
}
