#!/bin/bash
# examples/mnist/mnist.toml is valid, and reaches 97.5 % where MNIST's files are:
# below $TROUPE_DATA/mnist, or below shared/data/mnist of a folder above the
# sources.
set -euo pipefail
. tests/tools/skip_lib.sh
. tests/examples/mnist_lib.sh
train=(tools/trainer train --config=examples/mnist/mnist.toml
  --set checkpoint.dir="$TEST_TMPDIR/checkpoints")
"${train[@]}" --print-config

folder=$(find_mnist examples/mnist/mnist.toml)
[[ -n $folder ]] ||
  skip "no MNIST here: set TROUPE_DATA to the folder above mnist"
out=$("${train[@]}" --set data.path="$folder")
echo "$out"
accuracy=$(sed -n 's/^test accuracy: \([0-9.]*\)%.*/\1/p' <<<"$out")
awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy >= 97.5) }'
