// Draws a bar for each rank, which breaks down its time in a step.

function drawBreakdown(into, step, names, width, left) {
  const rows = step.ranks.length;
  const pitch = rows <= 8 ? 22 : rows <= 32 ? 15 : 9;
  const right = width - 76;
  const svg = svgElement('svg', {
    viewBox: `0 0 ${width} ${rows * pitch + 4}`, height: rows * pitch + 4,
    role: 'img', 'aria-label': 'where the time of each rank went'});
  step.ranks.forEach((rank, r) => {
    const y = r * pitch;
    if (pitch >= 11 || r % 2 === 0) {
      svg.append(svgElement('text', {
        x: left - 8, y: y + pitch / 2 + 3, 'text-anchor': 'end'}, names[r]));
    }
    let x = left;
    let idle = 0;
    rank.totals.forEach((time, kind) => {
      if (kind >= FIRST_IDLE_SPAN) idle += time;
      const share = time / (step.length || 1);
      const wide = share * (right - left);
      if (wide <= 0) return;
      const part = svgElement('rect', {
        x: x.toFixed(2), y, width: wide.toFixed(2), height: pitch - 3,
        class: 'share', fill: `var(--${SPAN_COLORS[kind]})`});
      part.addEventListener('mousemove', (event) => showTooltip(event, [
        DATA.span_kinds[kind] + '  ' + formatShare(share), names[r],
        formatTime(time) + ' of ' + formatTime(step.length)]));
      part.addEventListener('mouseleave', hideTooltip);
      svg.append(part);
      x += wide;
    });
    if (pitch >= 11 || r % 2 === 0) {
      svg.append(svgElement(
          'text', {x: right + 8, y: y + pitch / 2 + 3},
          formatShare(idle / (step.length || 1)) + ' idle'));
    }
  });
  into.replaceChildren(svg);
}

// Returns the fraction of the time of all ranks, by kind.
function sharesOf(step) {
  const shares = DATA.span_kinds.map(() => 0);
  const all = step.length * step.ranks.length || 1;
  for (const rank of step.ranks) {
    rank.totals.forEach((time, kind) => { shares[kind] += time / all; });
  }
  return shares;
}
