#!/bin/bash
# A limit on file sizes simulates a full disk: a checkpoint that cannot be
# written ends the run with one line and leaves the last good one unchanged.
set -euo pipefail
. tests/tools/trainer_lib.sh

# 256 x 256 weights: files of more than 64 KiB.
wide=(--set model.widths=256,256 --set checkpoint.every=10)
quietly train --config=tiny.toml "${wide[@]}" --set train.steps=10
cp -r saved before

(
  ulimit -f 64
  fails_with 1 'trainer: *cannot write saved/step-00000020.tmp-*/model.safetensors: File too large; raise the limit on file sizes (ulimit -f)' \
    train --config=tiny.toml "${wide[@]}" --resume --set train.steps=30
)
[[ $(names_in saved) == step-00000010 ]] || die "left: $(names_in saved)"
diff -r --exclude=.lock before saved || die "the good checkpoint was touched"

# With space again the run resumes and ends at the same bits.
quietly train --config=tiny.toml "${wide[@]}" --resume --set train.steps=30
quietly train --config=tiny.toml "${wide[@]}" --set train.steps=30 \
  --set checkpoint.dir=whole
same_bytes saved/step-00000030/model.safetensors \
  whole/step-00000030/model.safetensors
