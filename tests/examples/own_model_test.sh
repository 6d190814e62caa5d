#!/bin/bash
# examples/own_model learns; stopped and started again, it ends at the bits of a
# run in one go; and it says what is wrong with a checkpoint.
set -euo pipefail
program=$PWD/examples/own_model/own_model
cd "$(mktemp -d "$TEST_TMPDIR/XXXXXX")"

die() {
  echo "FAILED: $*" >&2
  exit 1
}

# Measured: 0.568 at step 100, 0.853 at step 200.
mkdir once twice
(cd once && "$program" 200) >once.txt
(cd twice && "$program" 100) >first.txt
cp twice/mixer.safetensors first.safetensors
(cd twice && "$program" 200) >second.txt
cat first.txt second.txt
cmp once.txt second.txt || die "it goes on with other numbers"
for file in mixer.safetensors mixer_answers.safetensors; do
  cmp "once/$file" "twice/$file" || die "it goes on with other bits"
done
! cmp -s first.safetensors twice/mixer.safetensors || die "it did not go on"
accuracy=$(sed -n 's/^test accuracy //p' once.txt)
awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy > 0.8) }' ||
  die "the accuracy is $accuracy"

model=twice/checkpoints/mixer/step-00000200/model.safetensors
truncate -s 1000 "$model"
(cd twice && "$program" 300) >out.txt 2>&1 && die "half a file was read"
grep -q "step-00000200/model.safetensors" out.txt || die "$(cat out.txt)"
