#!/bin/bash
# examples/ddp_mnist learns MNIST's digits where their files are: below
# $TROUPE_DATA/mnist, or below shared/data/mnist of a folder above the sources.
set -euo pipefail
. tests/tools/skip_lib.sh
. tests/examples/mnist_lib.sh

folder=$(find_mnist examples/ddp_mnist/ddp_mnist.py)
[[ -n $folder ]] ||
  skip "no MNIST here: set TROUPE_DATA to the folder above mnist"
out=$(examples/ddp_mnist/ddp_mnist "$folder")
echo "$out"
accuracy=$(sed -n 's/^accuracy \([0-9.]*\)%$/\1/p' <<<"$out")
awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy >= 90) }'
