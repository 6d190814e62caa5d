#!/bin/bash
# examples/pipeline_resnet50 in threads and in two processes, by its own check,
# and the picture of its timelines: each rank has the forwards and backwards of
# all micro-batches, and its second half begins after its first.
set -euo pipefail
EXAMPLES=$PWD/examples
. tests/tools/trainer_lib.sh
program=$EXAMPLES/pipeline_resnet50/pipeline_resnet50

check() {
  grep -qE '^one after the other: [0-9.]+ s a step$' out.txt ||
    die "$1: $(cat out.txt)"
  grep -qE '^pipelined: [0-9.]+ s a step$' out.txt || die "$1: $(cat out.txt)"
  python3 "$EXAMPLES/pipeline_resnet50/timeline.py" || die "$1: no picture"
  python3 - <<'PYTHON' || die "$1: $(cat timeline.svg)"
import collections
import xml.etree.ElementTree as xml
name = "{http://www.w3.org/2000/svg}"
rows = collections.defaultdict(list)
for bar in xml.parse("timeline.svg").getroot().iter(name + "rect"):
    if bar.get("class"):
        rows[float(bar.get("y"))].append((bar.get("class"), float(bar.get("x"))))
assert len(rows) == 4, rows
for number, y in enumerate(sorted(rows)):
    actions = [action for action, _ in rows[y] if action[0] in "FB"]
    micro_batches = 1 if number < 2 else 4
    want = [kind + str(m) for kind in "FB" for m in range(micro_batches)]
    assert sorted(actions) == sorted(want), actions
    assert any(action[0] == "U" for action, _ in rows[y]), rows[y]
    begins = dict(rows[y])
    assert begins["F0"] < begins["B0"], begins
PYTHON
}

"$program" >out.txt 2>err.txt || die "threads: $(cat out.txt err.txt)"
check threads
rm -r pipeline_resnet50_*
"$TRAINER" launch --nproc-per-node=2 --program="$program" >out.txt 2>err.txt ||
  die "processes: $(cat out.txt err.txt)"
check processes
rm -r pipeline_resnet50_1
python3 "$EXAMPLES/pipeline_resnet50/timeline.py" 2>err.txt &&
  die "it draws nothing"
grep -q 'pipeline_resnet50_1 has no timelines; run pipeline_resnet50 first' \
  err.txt || die "$(cat err.txt)"
