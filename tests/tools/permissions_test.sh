#!/bin/bash
# What may not be read or written ends the run with a line that names it, and
# checkpoints stay as they are. Root may do anything, so the test gives up what
# makes root special: without capabilities root is bound by permissions too.
set -euo pipefail
if [[ $(id -u) == 0 && ${1:-} != without_capabilities ]]; then
  exec setpriv --bounding-set=-all --inh-caps=-all \
    "$0" without_capabilities
fi
. tests/tools/trainer_lib.sh

denied='Permission denied; change its permissions or use another path'
mkdir locked
chmod a-w locked
! touch locked/file 2>/dev/null || die 'permissions bind nobody here'

cp tiny.toml unread.toml
chmod a-r unread.toml
fails_with 2 "trainer: cannot read unread.toml: $denied" \
  train --config=unread.toml

fails_with 1 "trainer: cannot create folder locked/saved: $denied" \
  train --config=tiny.toml --set checkpoint.dir=locked/saved
fails_with 1 "trainer: cannot lock locked/.lock: $denied" \
  train --config=tiny.toml --set checkpoint.dir=locked
for file in log trace; do
  fails_with 1 "trainer: cannot * locked/$file: $denied" \
    train --config=tiny.toml --set "$file.file=locked/$file"
done
[[ $(names_in locked) == '*' ]] || die "left: $(names_in locked)"

mkdir data
touch data/t10k-{images-idx3,labels-idx1}-ubyte
chmod a-r data/t10k-images-idx3-ubyte
fails_with 1 "trainer: --set data.path: cannot read data/t10k-images-idx3-ubyte: $denied" \
  train --config=tiny.toml --set data.kind=mnist --set data.path=data

# The folder is closed between two checkpoints.
rm -rf saved
start train --config=tiny.toml --set train.steps=1000000000 \
  --set checkpoint.every=100
read_until 'step *'
until ls -d saved/step-???????? >/dev/null 2>&1; do :; done
chmod a-w saved
ends_with 1
want="trainer: checkpointer: cannot * saved/step-*: $denied"
# shellcheck disable=SC2053
[[ $(cat err.txt) == $want ]] || die "it says: $(cat err.txt)"

# What it had saved serves as soon as it may be read.
chmod u+w saved
last=$(basename "$(ls -d saved/step-???????? | tail -n 1)")
chmod a-r "saved/$last/model.safetensors"
steps=$((10#${last#step-} + 10))
fails_with 1 "trainer: *cannot read saved/$last/model.safetensors: $denied" \
  train --config=tiny.toml --resume --set train.steps="$steps"
chmod u+r "saved/$last/model.safetensors"
quietly train --config=tiny.toml --resume --set train.steps="$steps"
quietly train --config=tiny.toml --set checkpoint.dir=whole \
  --set train.steps="$steps"
folder=$(printf 'step-%08d' "$steps")
same_bytes "saved/$folder/model.safetensors" "whole/$folder/model.safetensors"
