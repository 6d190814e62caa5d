#!/bin/bash
# PyTorch loads the weights of examples/own_model, strictly, and answers the same.
set -euo pipefail
. tests/tools/skip_lib.sh
python=$PWD/tools/lib/peer_python.sh
program=$PWD/examples/own_model/own_model
check=$PWD/examples/own_model/check.py
"$python" -c 'import safetensors, torch' 2>/dev/null ||
  skip "no torch and safetensors: set TROUPE_PYTHON to a Python that has them"
cd "$(mktemp -d "$TEST_TMPDIR/XXXXXX")"

die() {
  echo "FAILED: $*" >&2
  exit 1
}

"$program" 10
cp mixer_answers.safetensors earlier.safetensors
"$program" 20
"$python" "$check" || die "PyTorch answers otherwise"
"$python" "$check" mixer.safetensors earlier.safetensors &&
  die "the answers of other weights pass"
exit 0
