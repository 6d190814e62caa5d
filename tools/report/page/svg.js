// Makes elements and the tooltip. Texts of the run become text nodes only.

function svgElement(name, attributes, text) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  return element;
}

function htmlElement(name, className, text) {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function byId(id) {
  return document.getElementById(id);
}

// Shows the tooltip, with its first line emphasised.
function showTooltip(event, lines) {
  const tooltip = byId('tooltip');
  tooltip.replaceChildren(htmlElement('b', '', lines[0]));
  if (lines.length > 1) tooltip.append('\n' + lines.slice(1).join('\n'));
  tooltip.hidden = false;
  const box = tooltip.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, innerWidth - box.width - 8);
  const below = event.clientY + 18;
  const top = below + box.height < innerHeight - 8
      ? below : event.clientY - box.height - 12;
  tooltip.style.left = Math.max(8, left) + 'px';
  tooltip.style.top = Math.max(8, top) + 'px';
}

function hideTooltip() {
  byId('tooltip').hidden = true;
}

// Returns the width of a chart on the screen.
function widthOf(element) {
  return Math.max(320, Math.floor(element.clientWidth || 1100));
}

// Adds a time axis below the rows of a chart.
function addTimeAxis(svg, scale, height) {
  const {view, left, right} = scale;
  const unit = timeUnit(view[1] - view[0]);
  for (const [tick, text] of ticksOf(view[0], view[1], 8, unit)) {
    const x = scale.x(tick);
    svg.append(svgElement('line', {
      x1: x, x2: x, y1: 0, y2: height + 3, class: 'axis'}));
    const anchor = x < left + 20 ? 'start' : x > right - 24 ? 'end' : 'middle';
    svg.append(svgElement(
        'text', {x: x, y: height + 15, 'text-anchor': anchor}, text));
  }
}

// Returns the width of the margin for the names of rows.
function marginFor(names) {
  const longest = names.reduce((most, name) => Math.max(most, name.length), 0);
  return Math.max(76, 6.6 * longest + 16);
}

// Returns the mapping from time to x, the same for all charts of a step.
function timeScale(view, width, left) {
  const right = width - 10;
  const perMicro = (right - left) / Math.max(view[1] - view[0], 1e-9);
  return {
    view, left, right,
    x: (time) => left + (time - view[0]) * perMicro,
    time: (x) => view[0] + (x - left) / perMicro,
  };
}
