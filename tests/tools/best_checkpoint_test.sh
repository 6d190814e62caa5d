#!/bin/bash
# The best checkpoint, an early stop and `trainer evaluate`, by the program.
set -euo pipefail
. tests/tools/trainer_lib.sh

options=(--config=tiny.toml --set train.steps=200 --set train.eval_every=10
  --set checkpoint.keep=1 --set checkpoint.keep_best=true
  --set train.early_stop_patience=2 --set train.early_stop_min_delta=1000)

# No evaluation after the first improves by so much: the third ends the run.
quietly train "${options[@]}"
grep -q '^done: 30 steps' out.txt || die "$(cat out.txt)"
grep -q '^ended early: eval_loss has not improved by more than 1000 in 2 ' \
  out.txt || die "$(cat out.txt)"
grep -q -e '--set train.early_stop_patience=4 --resume$' out.txt ||
  die "$(cat out.txt)"
best=$(sed -n 's/^best: .* after step \([0-9]*\), saved\/best$/\1/p' out.txt)
[[ $(readlink saved/best) == step-000000$best ]] || die "$(ls -l saved)"

# It stays ended, and goes on with more patience.
quietly train "${options[@]}" --resume
grep -q '^done: 0 steps' out.txt || die "$(cat out.txt)"
quietly train "${options[@]}" --resume --set train.early_stop_patience=4
grep -q '^done: 20 steps' out.txt || die "$(cat out.txt)"

# The best one says what its evaluation said, under another layout too.
quietly evaluate --checkpoint=saved/best --config=tiny.toml --ranks=2
grep -q '^saved/best after step [0-9]*: test loss ' out.txt ||
  die "$(cat out.txt)"
quietly evaluate --checkpoint=saved --config=tiny.toml
grep -q '^saved/step-00000050 after step 50: test loss ' out.txt ||
  die "$(cat out.txt)"

# Nor are training samples needed where the test samples are apart from them.
tokens() {  # NUMBER LIMIT: so many tokens below the limit, of two bytes each
  for ((i = 0; i < $1; ++i)); do printf "\\x$(printf %02x $((i * i % $2)))\\x00"; done
}
mkdir words
tokens 500 7 >words/train.bin
tokens 90 7 >words/val.bin
cat >words.toml <<'TOML'
[model]
kind = "gpt_nano"
depth = 1
width = 12

[data]
kind = "tokens"
path = "words"
context = 8
vocab_size = 7

[train]
steps = 3
global_batch_size = 4

[checkpoint]
dir = "said"
TOML
quietly train --config=words.toml
quietly evaluate --checkpoint=said --config=words.toml
mv out.txt with.txt
rm words/train.bin
quietly evaluate --checkpoint=said --config=words.toml
diff with.txt out.txt
mv words/val.bin words/other.bin
fails_with 1 'trainer: words.toml:8: no words/val.bin to evaluate, nor *' \
  evaluate --checkpoint=said --config=words.toml

fails_with 1 'trainer: no checkpoint in nowhere; *' \
  evaluate --checkpoint=nowhere --config=tiny.toml
fails_with 2 'trainer: no checkpoint to evaluate; *' evaluate

# A run that replaces another, and keeps no best one, leaves no link to nothing.
quietly train --config=tiny.toml --set checkpoint.replace=true
[[ $(names_in saved) == step-00000020 ]] || die "$(ls -l saved)"
