#!/bin/bash
# Weights of torchvision, transformers and timm, as torch.save writes them: loaded
# by the trainer they give PyTorch's logits, and come back as they went in.
# $TROUPE_PYTHON (else python3) must have torch, torchvision, transformers and timm.
set -euo pipefail
. tests/tools/skip_lib.sh
python=$PWD/tools/lib/peer_python.sh
# An import of PyTorch takes seconds.
"$python" - <<'PYTHON' || skip "no PyTorch, torchvision, transformers and timm: set TROUPE_PYTHON to a Python that has them"
import importlib.util as u
import sys
sys.exit(not all(map(u.find_spec, ("torch", "torchvision", "transformers", "timm",
                                   "safetensors"))))
PYTHON
programs=("$PWD/tools/trainer" "$PWD/tests/tools/weights/answers")
script=$PWD/tests/tools/weights/pytorch_weights.py
cd "$(mktemp -d "$TEST_TMPDIR/XXXXXX")"
exec "$python" "$script" "${programs[@]}"
