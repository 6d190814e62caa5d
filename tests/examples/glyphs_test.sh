#!/bin/bash
# examples/glyphs/glyphs.toml reaches what it promises.
set -euo pipefail
out=$(tools/trainer train --config=examples/glyphs/glyphs.toml \
  --set checkpoint.dir="$TEST_TMPDIR/checkpoints")
echo "$out"
accuracy=$(sed -n 's/^test accuracy: \([0-9.]*\)%.*/\1/p' <<<"$out")
awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy > 97) }'
