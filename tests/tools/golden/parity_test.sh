#!/bin/bash
# tools/golden/parity.py and its program agree with each other and, on narrow
# models, with PyTorch. $TROUPE_PYTHON (else python3) must have PyTorch.
set -euo pipefail
readonly PROGRAM=tools/golden/parity
die() {
  echo "FAILED: $*" >&2
  exit 1
}

"$PROGRAM" --help | grep -q 'tools/golden/parity.py' || die "no help"
code=0
"$PROGRAM" no/such/folder >/dev/null 2>err.txt || code=$?
((code == 2)) || die "exit code $code without a folder"
grep -q '^parity: .*no/such/folder/weights.safetensors' err.txt ||
  die "it says: $(cat err.txt)"

. tests/tools/skip_lib.sh
python=${TROUPE_PYTHON:-python3}
"$python" -c 'import torch' 2>/dev/null ||
  skip "no PyTorch for $python: set TROUPE_PYTHON to a Python that has it"

compare() {
  "$python" tools/golden/parity.py --thin --program="$PROGRAM" "$@"
}
compare --folder=cases >out.txt || die "PyTorch disagrees: $(cat out.txt)"
for model in resnet18 resnet50 vgg11 gpt vit_tiny; do
  (($(grep -c "^$model " out.txt) == 4)) || die "$model: $(cat out.txt)"
done

# What is wrong shows.
"$python" - cases/vit_tiny/weights.safetensors <<'PYTHON'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(-4, 2)
    file.write(b"\0\0\0\x3f")  # 0.5, in the last element: head.bias
PYTHON
code=0
"$PROGRAM" cases/vit_tiny >out.txt || code=$?
((code == 1)) || die "exit code $code with a wrong weight"
grep -q '^vit_tiny .* FAILED$' out.txt || die "it shows: $(cat out.txt)"

compare gpt lstm 2>err.txt && die "there is no lstm"
grep -q 'there is no model lstm; there are resnet18,' err.txt ||
  die "it says: $(cat err.txt)"
