// Fills the page with the data of the run.

const DATA = JSON.parse(byId('data').textContent);

function drawHeader() {
  byId('title').textContent = DATA.title;
  for (const [name, value] of DATA.facts) {
    const row = htmlElement('div');
    row.append(htmlElement('dt', '', name), htmlElement('dd', '', value));
    byId('facts').append(row);
  }
  for (const [name, value, what] of DATA.tiles) {
    const tile = htmlElement('div', 'tile');
    tile.append(htmlElement('div', 'name', name),
                htmlElement('div', 'value', value),
                htmlElement('div', 'what', what));
    byId('tiles').append(tile);
  }
  for (const note of DATA.notes) {
    byId('notes').append(htmlElement('li', '', note));
  }
  byId('notes').hidden = DATA.notes.length === 0;
}

drawHeader();
byId('step').hidden = DATA.steps.length === 0;
const stepView = DATA.steps.length > 0 ? new StepView() : null;

function drawAll() {
  if (stepView) stepView.draw();
  drawCurves(byId('curves'));
}

let drawnWidth = 0;
addEventListener('resize', () => {
  if (innerWidth === drawnWidth) return;
  drawnWidth = innerWidth;
  drawAll();
});
// Does not print a long list.
addEventListener('beforeprint', () => {
  const rows = document.querySelectorAll('.path-part').length;
  byId('path-details').open = rows <= 60;
});
drawnWidth = innerWidth;
drawAll();
