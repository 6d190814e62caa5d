// The charts of one step, which share their time scale.

class StepView {
  constructor() {
    this.step = typicalStep();
    this.plan = 0;
    this.view = null;  // null for the whole step
    this.fillControls();
  }

  fillControls() {
    const slider = byId('step-slider');
    const select = byId('step-select');
    slider.max = DATA.steps.length - 1;
    DATA.steps.forEach((step, i) => {
      select.append(new Option(step.step.toLocaleString('en-US'), i));
    });
    slider.hidden = DATA.steps.length < 3;
    slider.value = select.value = this.step;
    DATA.plans.forEach((plan, i) => {
      byId('plan-select').append(new Option(plan.name, i));
    });
    byId('plan-label').hidden = DATA.plans.length < 2;
    const choose = (value) => {
      this.step = Number(value);
      slider.value = select.value = this.step;
      this.view = null;
      this.draw();
    };
    slider.addEventListener('input', () => choose(slider.value));
    select.addEventListener('change', () => choose(select.value));
    byId('plan-select').addEventListener('change', (event) => {
      this.plan = Number(event.target.value);
      this.draw();
    });
    byId('zoom-out').addEventListener('click', () => this.show(null));
  }

  show(view) {
    this.view = view;
    this.draw();
  }

  draw() {
    const step = DATA.steps[this.step];
    const plan = DATA.plans[this.plan];
    const whole = [0, Math.max(step.length, plan ? plan.length : 0)];
    byId('zoom-out').hidden = this.view === null;
    const width = widthOf(byId('executed'));
    const left = marginFor(DATA.rank_names);
    const scale = timeScale(this.view || whole, width, left);
    this.drawTexts(step, plan);
    this.drawGrids(step, plan, scale);
    const hasMemory = step.ranks.some((rank) => rank.memory.length > 0);
    byId('memory').hidden = byId('memory-title').hidden = !hasMemory;
    if (hasMemory) {
      const svg = drawMemory(byId('memory'), step, DATA.rank_names, scale);
      selectByDragging(svg, scale, 150, (view) => this.show(view));
    }
    drawMemoryLegend(byId('memory-legend'), DATA.rank_names);
    byId('memory-legend').hidden = !hasMemory || DATA.rank_names.length > 8;
    drawBreakdown(byId('breakdown'), step, DATA.rank_names, width, left);
    drawPathTable(step, DATA.rank_names);
  }

  drawGrids(step, plan, scale) {
    const cursors = [];
    const onHover = (time) => {
      for (const cursor of cursors) {
        const [first, last] = scale.view;
        const off = time === null || time < first || time > last;
        cursor.setAttribute('visibility', off ? 'hidden' : 'visible');
        if (off) continue;
        cursor.setAttribute('x1', scale.x(time));
        cursor.setAttribute('x2', scale.x(time));
      }
    };
    const add = (into, options) => {
      const svg = drawGrid(into, options, scale, onHover);
      const height = options.ranks.length * rowHeight(options.ranks.length);
      const cursor = svgElement('line', {
        y1: 0, y2: height, class: 'cursor', visibility: 'hidden'});
      svg.append(cursor);
      cursors.push(cursor);
      selectByDragging(svg, scale, height, (view) => this.show(view));
    };
    add(byId('executed'), {
      ranks: step.ranks, names: DATA.rank_names, path: step.path,
      label: 'the executed step'});
    byId('planned').hidden = byId('planned-title').hidden = !plan;
    if (!plan) return;
    add(byId('planned'), {
      ranks: plan.ranks.map((bars) => plannedRank(bars, plan.length)),
      names: plan.rank_names, path: plan.path, label: 'the planned step'});
  }

  drawTexts(step, plan) {
    const shares = sharesOf(step);
    const idle = shares.slice(FIRST_IDLE_SPAN).reduce((a, b) => a + b, 0);
    byId('executed-title').textContent =
        `Executed: ${formatTime(step.length)}, ${formatShare(idle)} idle`;
    if (plan) {
      byId('planned-title').textContent =
          `Planned, with costs ${plan.name}: ${formatTime(plan.length)}, ` +
          `${formatShare(plan.idle)} idle`;
    }
    const waits = shares
        .map((share, kind) => [DATA.span_kinds[kind], share, kind])
        .filter((row) => row[2] > FIRST_IDLE_SPAN && row[1] >= 0.0005)
        .sort((a, b) => b[1] - a[1])
        .map((row) => `${row[0]} ${formatShare(row[1])}`);
    const exposed = 'exposed communication ' +
        formatShare(shares[FIRST_IDLE_SPAN]);
    byId('step-summary').textContent =
        `Of the time of all ranks: ${[exposed].concat(waits).join(', ')}.`;
    const words = new Set();
    const spans = new Set();
    for (const rank of step.ranks) {
      for (const bar of rank.compute.concat(rank.comm)) words.add(bar[0]);
      for (const span of rank.spans) spans.add(span[0]);
    }
    const isLate = step.ranks.some((rank) => rank.comm.some(
        ([, , , begin, , launched]) => launched - begin > 1e-3 * step.length));
    drawLegend(
        byId('legend'), words, spans, isLate, step.path.length > 0);
  }
}

// Returns the index of the step with the median length.
function typicalStep() {
  const byLength = DATA.steps.map((step, i) => [step.length, i])
      .sort((a, b) => a[0] - b[0]);
  return byLength[(byLength.length - 1) >> 1][1];
}

// Adds spans to a planned rank: it waits in the gaps between bars.
function plannedRank(bars, length) {
  const waiting = SPAN_COLORS.indexOf('waiting');
  const done = SPAN_COLORS.indexOf('done');
  const spans = [];
  let at = 0;
  for (const [, , , begin, end] of bars) {
    if (begin > at) spans.push([waiting, at, begin]);
    at = Math.max(at, end);
  }
  if (length > at) spans.push([done, at, length]);
  return {compute: bars, comm: [], spans};
}
