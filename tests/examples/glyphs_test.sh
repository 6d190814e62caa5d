#!/bin/bash
# examples/glyphs/glyphs.toml reaches what it promises, and what it trains on is
# no trivial task: a linear model stays far below.
set -euo pipefail

# accuracy_of OPTIONS...: trains with the example's configuration; the test
# accuracy in percent.
accuracy_of() {
  local out
  out=$(tools/trainer train --config=examples/glyphs/glyphs.toml \
    --set checkpoint.dir="$TEST_TMPDIR/checkpoints" "$@")
  echo "$out" >&2
  sed -n 's/^test accuracy: \([0-9.]*\)%.*/\1/p' <<<"$out"
}

# holds 'CONDITION': of the two accuracies.
holds() {
  awk -v cnn="$cnn" -v linear="$linear" "BEGIN { exit !($1) }" && return
  echo "FAILED: $1, with cnn = $cnn, linear = $linear" >&2
  exit 1
}

# Measured: 98.6 %, and 77.3 % for the linear model with its best learning rate
# (0.0005 to 0.05 give 70 to 78 %); four times the epochs give 76 %.
cnn=$(accuracy_of)
linear=$(accuracy_of --set model.kind=linear --set optimizer.lr=0.005)
holds 'cnn > 97'
holds 'linear > 70'  # it has learned what it can
holds 'linear < 85'
