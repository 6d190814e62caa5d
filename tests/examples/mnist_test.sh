#!/bin/bash
# examples/mnist/mnist.toml is valid, and reaches 97.5 % where MNIST's files are,
# and examples/ddp_mnist 90 %: below $TROUPE_DATA/mnist, or below
# shared/data/mnist of a folder above the sources.
set -euo pipefail
. tests/tools/skip_lib.sh
train=(tools/trainer train --config=examples/mnist/mnist.toml
  --set checkpoint.dir="$TEST_TMPDIR/checkpoints")
"${train[@]}" --print-config

find_data() {
  if [[ -n ${TROUPE_DATA:-} ]]; then
    echo "$TROUPE_DATA/mnist"
    return
  fi
  # Bazel links the configuration to the one in the source tree.
  local above
  above=$(dirname "$(realpath examples/mnist/mnist.toml)")
  while [[ $above != / ]]; do
    if [[ -d $above/shared/data/mnist ]]; then
      echo "$above/shared/data/mnist"
      return
    fi
    above=$(dirname "$above")
  done
}

folder=$(find_data)
[[ -n $folder ]] ||
  skip "no MNIST here: set TROUPE_DATA to the folder above mnist"
if [[ ! -d $folder ]]; then
  echo "FAILED: TROUPE_DATA is set, but there is no folder $folder" >&2
  exit 1
fi
out=$("${train[@]}" --set data.path="$folder")
echo "$out"
accuracy=$(sed -n 's/^test accuracy: \([0-9.]*\)%.*/\1/p' <<<"$out")
awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy >= 97.5) }'

out=$(examples/ddp_mnist/ddp_mnist "$folder")
echo "$out"
accuracy=$(sed -n 's/^accuracy \([0-9.]*\)%$/\1/p' <<<"$out")
awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy >= 90) }'
