#!/bin/bash
# trainer report, by the program: pages of real runs are opened in a browser
# without a screen. Their scripts run without an error, and the bars are there.
set -euo pipefail
. tests/tools/skip_lib.sh
. tests/tools/trainer_lib.sh

browser=
for name in chromium chromium-browser google-chrome; do
  browser=$(command -v "$name") && break
done
[[ -n $browser ]] || skip "no chromium here; apt-get install chromium"

# Opens a page; what its script has made of it is in dom.html, and what it
# complains of in console.txt.
open_page() {
  HOME=$PWD timeout 100 "$browser" --headless --no-sandbox --disable-gpu \
    --disable-dev-shm-usage --user-data-dir="$PWD/profile" \
    --window-size=1280,900 --enable-logging=stderr --virtual-time-budget=5000 \
    --dump-dom "file://$PWD/$1" >dom.html 2>browser.txt ||
    die "the browser failed: $(tail -5 browser.txt)"
  grep CONSOLE browser.txt >console.txt || true
}

opens_quietly() {
  open_page "$1"
  [[ ! -s console.txt ]] || die "$1 complains: $(cat console.txt)"
}

# How many elements of the page have the attribute $1.
number_with() {
  { grep -o "<[a-z]* [^>]*$1[^>]*>" dom.html || true; } | wc -l
}

count_is() {
  (($(number_with "$1") == $2)) ||
    die "$(number_with "$1") elements with $1, not $2"
}

count_is_at_least() {
  (($(number_with "$1") >= $2)) ||
    die "$(number_with "$1") elements with $1, fewer than $2"
}

# Two stages, four micro-batches: executed and planned.
quietly train --config=tiny.toml --set 'model.widths=[16, 16]' \
  --set mesh.pp=2 --set train.micro_batch_size=4 \
  --set optimizer.clip_grad_norm=1 --run-dir=piped
grep -q '^run folder: piped ' out.txt || die "$(cat out.txt)"
quietly report piped
[[ $(cat out.txt) == 'wrote piped/report.html ('* ]] || die "$(cat out.txt)"
opens_quietly piped/report.html
count_is 'data-word="F"' 16
count_is 'data-word="B"' 16
count_is_at_least 'data-word="UP"' 2
count_is_at_least 'data-word="LR"' 2
count_is_at_least 'class="span"' 2
count_is_at_least 'class="path-outline"' 8
count_is_at_least 'class="share"' 6
count_is 'class="curve memory-of"' 2
# Loss and accuracy, also on test samples; throughput, rate, norm and memory.
count_is 'class="curve series"' 8
! grep -Eo '(src|href)="[^"]*"|url\(|https?://[^w"]' piped/report.html ||
  die 'the page asks for something'

# Another step, a part of it, and what is under the mouse.
cat piped/report.html - >used.html <<'HTML'
<script>
const slider = byId('step-slider');
slider.value = slider.max;
slider.dispatchEvent(new Event('input'));
const at = (type, x) => new PointerEvent(
    type, {clientX: x, clientY: box.top + 9, pointerId: 1, bubbles: true});
let svg = document.querySelector('#executed svg');
const box = svg.getBoundingClientRect();
svg.setPointerCapture = () => {};
svg.dispatchEvent(at('mousemove', box.left + 300));
const words = byId('tooltip').textContent;
svg.dispatchEvent(at('pointerdown', box.left + 300));
svg.dispatchEvent(at('pointermove', box.left + 500));
svg.dispatchEvent(at('pointerup', box.left + 500));
document.body.dataset.step = byId('step-select').selectedIndex;
document.body.dataset.zoomed = !byId('zoom-out').hidden;
document.body.dataset.words = words.includes('rank 0') ? 'told' : words;
</script>
HTML
opens_quietly used.html
count_is 'data-step="4"' 1
count_is 'data-zoomed="true"' 1
count_is 'data-words="told"' 1

# Two replicas, and one rank alone.
quietly train --config=tiny.toml --ranks=2 --run-dir=replicas \
  --set checkpoint.dir=of_replicas --set comm.inline_bytes=0
quietly report replicas --output=replicas.html
opens_quietly replicas.html
count_is 'data-word="F"' 3
count_is_at_least 'data-word="AR"' 2
quietly train --config=tiny.toml --run-dir=alone --set checkpoint.dir=of_one
quietly report alone
opens_quietly alone/report.html
count_is 'data-word="F"' 2

# A resumed run goes on in the metrics; without a timeline there are curves.
quietly train --config=tiny.toml --run-dir=alone --set checkpoint.dir=of_one \
  --resume --set train.steps=25
quietly report alone
grep -q '^note: No step is drawn' out.txt || die "$(cat out.txt)"
grep -q '"step":25\b' alone/metrics.jsonl || die 'no step 25'
grep -q '"step":1,' alone/metrics.jsonl || die 'no step 1'
opens_quietly alone/report.html
count_is 'data-word="F"' 0
count_is_at_least 'class="curve series"' 4

# This test sees an error, too.
sed "s/^'use strict';/&\nnoSuchFunction();/" piped/report.html >spoilt.html
open_page spoilt.html
grep -q 'noSuchFunction is not defined' console.txt ||
  die "no error seen: $(cat browser.txt)"

fails_with 1 'trainer: nowhere has no run.json, so it is no run folder; *' \
  report nowhere
fails_with 2 'trainer: report takes one run folder, not 0; *' report
echo '{"kind":"train"}' >>piped/metrics.jsonl
last=$(wc -l <piped/metrics.jsonl)
fails_with 1 "trainer: piped/metrics.jsonl: line $last: step is missing; remove this file, *" \
  report piped
