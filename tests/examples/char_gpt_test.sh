#!/bin/bash
# The first steps of examples/char_gpt: the same losses by one rank, by two, and
# by two stages, in one process and in two; and text from what they have saved.
set -euo pipefail
config=$PWD/examples/char_gpt/char_gpt.toml
. tests/examples/losses_lib.sh

common=(--config="$config" --set train.steps=3 --set train.global_batch_size=4
  --set data.context=32 --set data.val_fraction=0.01)
stages=(--set mesh.dp=1 --set mesh.pp=2 --set mesh.cuts=h.2)

train_as one --ranks=1
(($(grep -c '^train' one.txt) == 3)) || die "$(cat one.txt)"
grep -q '^evaluation 3 ' one.txt || die "$(cat one.txt)"

# A stage adds nothing: the micro-batch and its losses are those of one rank.
train_as stages "${stages[@]}"
in_two_processes stages_apart "${stages[@]}"
same_losses one stages stages_apart

# Two ranks add up two halves of the batch, wherever they are.
train_as two --ranks=2
in_two_processes two_apart --ranks=2
same_losses two two_apart
near_losses 1e-5 one two

quietly generate --config="$config" --set data.context=32 \
  --checkpoint=two_apart --prompt='The ' --tokens=40
text=$(cat out.txt)
echo "$text"
[[ $text == 'The '* && ${#text} -gt 20 ]] || die "it says: $text"
