#!/bin/bash
# The profiler's table stands beside torch.profiler's, with the same calls of
# convolutions and batch norms. $TROUPE_PYTHON (else python3) must have PyTorch.
set -euo pipefail
readonly FOLDER=tools/bench/profiler PROGRAM=tools/bench/profiler/resnet_profile
readonly SIZES=(--depth=18 --image=64 --batch=4 --steps=1)
die() {
  echo "FAILED: $*" >&2
  exit 1
}

# 20 convolutions and as many batch norms; the first convolution has no gradient
# of its input.
"$PROGRAM" "${SIZES[@]}" --rows >rows.txt || die "no rows"
for row in Conv2dForward:20 Conv2dBackwardWeight:20 Conv2dBackwardInput:19; do
  grep -qP "^${row%:*}\t${row#*:}\t" rows.txt || die "no $row: $(<rows.txt)"
done
"$PROGRAM" "${SIZES[@]}" | grep -q '^rank 0: 1 step in .* in operators$' ||
  die "no table"
"$PROGRAM" "${SIZES[@]}" --cost |
  grep -qP '^a step without a Profiler: .* outside of its window: .* times$' ||
  die "no cost"

python3 "$FOLDER/profiler_tables.py" --program=/nowhere 2>err.txt &&
  die "it runs without a program"
grep -q 'there is no /nowhere; build it by' err.txt || die "it says: $(<err.txt)"

. tests/tools/skip_lib.sh
python=${TROUPE_PYTHON:-python3}
# An import of PyTorch takes seconds.
"$python" - <<'PYTHON' || skip "no PyTorch for $python: set TROUPE_PYTHON to a Python that has it"
import importlib.util as u
import sys
sys.exit(not all(map(u.find_spec, ("numpy", "torch"))))
PYTHON

"$python" "$FOLDER/profiler_tables.py" --program="$PROGRAM" "${SIZES[@]}" \
  --row-limit=100 >out.txt || die "$(<out.txt)"
grep -q '^ResNet-18, 1 step with 4 images of 64 x 64, one core$' out.txt &&
  grep -q '^troupe::Profiler: .* ms  *torch.profiler: .* ms$' out.txt ||
  die "no heads: $(<out.txt)"
grep -q '^Conv2dForward  *20 ' out.txt || die "no convolution: $(<out.txt)"
grep -q ' aten::mkldnn_convolution  *20 ' out.txt ||
  die "no convolution of PyTorch: $(<out.txt)"
grep -q ' aten::convolution_backward  *20 ' out.txt ||
  die "no backward of PyTorch: $(<out.txt)"
