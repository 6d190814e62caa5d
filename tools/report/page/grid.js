// Draws a recorded or planned step as a grid: a row for each rank, with time to
// the right.

// Narrower bars of one kind are drawn as one.
const BAR_PIXELS_MIN = 0.7;

function rowHeight(ranks) {
  return ranks <= 8 ? 34 : ranks <= 16 ? 24 : ranks <= 32 ? 16 : 11;
}

// `options`: names of the rows; ranks with compute, comm, spans; path; length.
function drawGrid(into, options, scale, onHover) {
  const rows = options.ranks.length;
  const pitch = rowHeight(rows);
  const withComm = options.ranks.some((rank) => rank.comm.length > 0);
  const commHeight = withComm ? Math.max(3, Math.round(pitch * 0.2)) : 0;
  const barHeight = pitch - commHeight - (pitch > 20 ? 5 : 2);
  const height = rows * pitch;
  const width = scale.right + 10;
  const svg = svgElement('svg', {
    viewBox: `0 0 ${width} ${height + 20}`, height: height + 20, role: 'img',
    'aria-label': options.label});
  const layout = {pitch, barHeight, commHeight, height};
  for (let r = 0; r < rows; ++r) {
    svg.append(svgElement('rect', {
      x: scale.left, y: r * pitch, width: scale.right - scale.left,
      height: pitch - (pitch > 20 ? 3 : 1), class: 'row'}));
    if (pitch < 14 && r % 2 !== 0) continue;
    svg.append(svgElement('text', {
      x: scale.left - 8, y: r * pitch + barHeight / 2 + 5,
      'text-anchor': 'end'}, options.names[r]));
  }
  addTimeAxis(svg, scale, height);
  options.ranks.forEach((rank, r) => drawRow(svg, rank, r, layout, scale));
  drawPath(svg, options.path, layout, scale);
  into.replaceChildren(svg);
  followMouse(svg, options, layout, scale, onHover);
  return svg;
}

function drawRow(svg, rank, r, layout, scale) {
  const y = r * layout.pitch + 1;
  const group = svgElement('g', {'data-row': r});
  const add = (begin, end, attributes) => {
    if (end < scale.view[0] || begin > scale.view[1]) return;
    const from = Math.max(scale.x(begin), scale.left);
    const wide = Math.min(scale.x(end), scale.right) - from;
    // Leaves a thin gap between bars that are wide enough.
    const shown = wide > 5 ? wide - 0.9 : Math.max(wide, 0.6);
    group.append(svgElement('rect', Object.assign(
        {x: from.toFixed(2), width: shown.toFixed(2)}, attributes)));
  };
  for (const [kind, begin, end] of mergedSpans(rank.spans, scale)) {
    add(begin, end, {
      y, height: layout.barHeight, class: 'span', 'data-kind': kind,
      fill: `var(--${SPAN_COLORS[kind]})`});
  }
  for (const [word, , , begin, end] of rank.others || []) {
    add(begin, end, {
      y, height: layout.barHeight, class: 'other-step', fill: colorOf(word)});
  }
  for (const [word, chunk, index, begin, end] of merged(rank.compute, scale)) {
    add(begin, end, {
      y, height: layout.barHeight, class: 'bar-of', 'data-word': word,
      fill: colorOf(word), 'fill-opacity': chunk % 2 ? 0.72 : 1});
    addLabel(group, labelOf(word, chunk, index), begin, end, y, layout, scale);
  }
  const below = y + layout.barHeight + 1;
  for (const [word, , , begin, end, launched] of rank.comm) {
    add(begin, launched, {
      y: below, height: layout.commHeight, class: 'comm-wait',
      fill: 'var(--comm-wait)'});
    add(launched, end, {
      y: below, height: layout.commHeight, class: 'comm', 'data-word': word,
      fill: 'var(--comm)'});
  }
  svg.append(group);
}

function addLabel(group, label, begin, end, y, layout, scale) {
  const from = Math.max(scale.x(begin), scale.left);
  const to = Math.min(scale.x(end), scale.right);
  if (layout.barHeight < 13 || to - from < 7 * label.length + 4) return;
  group.append(svgElement('text', {
    x: ((from + to) / 2).toFixed(1), y: y + layout.barHeight / 2 + 4,
    'text-anchor': 'middle', class: 'on-bar'}, label));
}

// Merges bars that would be too narrow to see with their neighbours.
function merged(bars, scale) {
  const small = BAR_PIXELS_MIN * (scale.view[1] - scale.view[0]) /
      (scale.right - scale.left);
  const out = [];
  for (const bar of bars) {
    const last = out[out.length - 1];
    if (last && last[0] === bar[0] && bar[4] - bar[3] < small &&
        bar[3] - last[4] < small && last[4] - last[3] < 4 * small) {
      last[4] = Math.max(last[4], bar[4]);
    } else {
      out.push(bar.slice());
    }
  }
  return out;
}

function mergedSpans(spans, scale) {
  return merged((spans || []).map(
      ([kind, begin, end]) => [kind, 0, 0, begin, end]), scale)
      .map(([kind, , , begin, end]) => [kind, begin, end]);
}

// Draws the outlines of bars on the critical path, and links between ranks.
function drawPath(svg, path, layout, scale) {
  const group = svgElement('g', {class: 'critical-path'});
  let before = null;
  for (const [rank, word, , , begin, end] of path) {
    const inView = end >= scale.view[0] && begin <= scale.view[1];
    const onComm = kindOf(word)[1] === 'comm';
    const top = rank * layout.pitch + 1;
    const y = onComm ? top + layout.barHeight + 1 : top;
    const height = onComm ? layout.commHeight : layout.barHeight;
    const from = Math.max(scale.x(begin), scale.left);
    const to = Math.min(scale.x(end), scale.right);
    if (inView) {
      group.append(svgElement('rect', {
        x: from.toFixed(2), y: y + 0.3, height: height - 0.6,
        width: Math.max(to - from - 0.9, 0.6).toFixed(2),
        'stroke-width': layout.pitch > 20 ? 1.7 : 0.8,
        class: 'path-outline'}));
    }
    const middle = top + layout.barHeight / 2;
    if (inView && before && before.rank !== rank && before.x >= scale.left) {
      group.append(svgElement('path', {
        d: `M${before.x.toFixed(1)} ${before.y}L${from.toFixed(1)} ${middle}`,
        class: 'path-link'}));
    }
    before = {rank, x: Math.min(scale.x(end), scale.right), y: middle};
  }
  svg.append(group);
}

// Shows the innermost bar under the mouse as text, or why there is none.
function followMouse(svg, options, layout, scale, onHover) {
  svg.addEventListener('mousemove', (event) => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) * (scale.right + 10) / box.width;
    const y = event.clientY - box.top;
    const row = Math.floor(y / layout.pitch);
    const time = scale.time(x);
    onHover(time);
    const rank = options.ranks[row];
    if (!rank || x < scale.left || x > scale.right) return hideTooltip();
    const onComm = y - row * layout.pitch > layout.barHeight + 1;
    const lines = describe(rank, time, onComm && rank.comm.length > 0);
    if (!lines) return hideTooltip();
    showTooltip(event, [lines[0], options.names[row]].concat(lines.slice(1)));
  });
  svg.addEventListener('mouseleave', () => {
    hideTooltip();
    onHover(null);
  });
}

function describe(rank, time, onComm) {
  const within = (bar) => bar[3] <= time && time <= bar[4];
  const bars = (onComm ? rank.comm : rank.compute).filter(within);
  if (bars.length > 0) {
    const [word, chunk, index, begin, end, launched] = bars[bars.length - 1];
    const lines = [
      labelOf(word, chunk, index) + '  ' + formatTime(end - begin),
      sentenceOf(word, chunk, index),
      'from ' + formatTime(begin) + ' to ' + formatTime(end)];
    if (launched !== undefined && launched > begin) {
      lines.push('launched by all ranks at ' + formatTime(launched));
    }
    return lines;
  }
  if (onComm) return null;
  const other = (rank.others || []).find(within);
  if (other) {
    const [word, chunk, index, begin, end, step] = other;
    return [
      labelOf(word, chunk, index) + ' of step ' + step,
      sentenceOf(word, chunk, index),
      'from ' + formatTime(begin) + ' to ' + formatTime(end)];
  }
  const span = (rank.spans || []).find((s) => s[1] <= time && time <= s[2]);
  if (!span) return null;
  return [
    DATA.span_kinds[span[0]] + '  ' + formatTime(span[2] - span[1]),
    'from ' + formatTime(span[1]) + ' to ' + formatTime(span[2])];
}

// Lets the user drag over a chart to zoom all charts of the step.
function selectByDragging(svg, scale, height, onSelect) {
  let from = null;
  let mark = null;
  const place = (event) => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) * (scale.right + 10) / box.width;
    return Math.min(Math.max(x, scale.left), scale.right);
  };
  svg.addEventListener('pointerdown', (event) => {
    from = place(event);
    mark = svgElement('rect', {
      x: from, y: 0, width: 0, height, class: 'select'});
    svg.append(mark);
    svg.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  svg.addEventListener('pointermove', (event) => {
    if (from === null) return;
    const to = place(event);
    mark.setAttribute('x', Math.min(from, to));
    mark.setAttribute('width', Math.abs(to - from));
  });
  svg.addEventListener('pointerup', (event) => {
    if (from === null) return;
    const to = place(event);
    mark.remove();
    const times = [from, to].sort((a, b) => a - b).map(scale.time);
    const far = Math.abs(to - from) > 4;
    from = null;
    if (far) onSelect(times);
  });
}
