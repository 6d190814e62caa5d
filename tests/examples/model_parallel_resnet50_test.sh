#!/bin/bash
# examples/model_parallel_resnet50 with small images: the losses of two parts are
# those of one rank, to the bit (the program's own check); its charts have a bar
# for each way to run, with its spread; and wrong sizes are named.
set -euo pipefail
program=$PWD/examples/model_parallel_resnet50/model_parallel_resnet50
cd "$(mktemp -d "$TEST_TMPDIR/XXXXXX")"

die() {
  echo "FAILED: $*" >&2
  exit 1
}

small=(--image=64 --batch=4 --classes=10 --width=8 --steps=1 --rounds=2)
"$program" "${small[@]}" --split_sizes=1,2 --svg=chart.svg | tee out.txt
[[ $(grep -c 's a step, deviation' out.txt) == 4 ]] || die "not four rows"

# Two charts: three kinds of run, and two split sizes. Each bar is as high as
# its number says, on the scale of its chart.
python3 - <<'PYTHON' || die "$(cat chart.svg)"
import xml.etree.ElementTree as xml
name = "{http://www.w3.org/2000/svg}"
svg = xml.parse("chart.svg").getroot()
bars = [bar for bar in svg.iter(name + "rect") if bar.get("class") == "bar"]
texts = [text.text for text in svg.iter(name + "text")]
assert len(bars) == 5, len(bars)
for label in ("two parts", "one rank", "1", "2"):
    assert label in texts, label
assert any(text.startswith("pipelined, splits of") for text in texts)
assert all(float(bar.get("height")) > 0 for bar in bars)
means = [float(line.split()[-6]) for line in open("out.txt") if "deviation" in line]
heights = [float(bar.get("height")) for bar in bars[3:]]
assert abs(heights[0] / heights[1] - means[2] / means[3]) < 0.1 * heights[0] / heights[1]
PYTHON

"$program" "${small[@]}" --split_sizes=3 2>err.txt && die "3 divides 4"
grep -q -- '--split_sizes: 3 does not divide --batch=4' err.txt ||
  die "$(cat err.txt)"
