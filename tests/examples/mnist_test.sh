#!/bin/bash
# examples/mnist/mnist.toml: always that it is valid; what it reaches only where
# $TROUPE_MNIST names the folder of MNIST's files.
set -euo pipefail
train=(tools/trainer train --config=examples/mnist/mnist.toml
  --set checkpoint.dir="$TEST_TMPDIR/checkpoints")
"${train[@]}" --print-config
if [[ -z ${TROUPE_MNIST:-} ]]; then
  echo "TROUPE_MNIST is not set: nothing was trained"
  exit 0
fi
out=$("${train[@]}" --set data.path="$TROUPE_MNIST")
echo "$out"
accuracy=$(sed -n 's/^test accuracy: \([0-9.]*\)%.*/\1/p' <<<"$out")
awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy >= 97.5) }'
