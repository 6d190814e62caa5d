#!/bin/bash
# `trainer generate`, by the program: text of a model that it has just trained.
set -euo pipefail
. tests/tools/trainer_lib.sh

printf 'To be, or not to be.\n%.0s' {1..40} >input.txt
cat >text.toml <<'TOML'
[model]
kind = "gpt_nano"

[data]
kind = "text"
path = "input.txt"
tokenizer = "chars"
context = 16

[train]
steps = 250
global_batch_size = 8

[optimizer]
kind = "adamw"
lr = 0.003

[checkpoint]
dir = "saved"
TOML
quietly train --config=text.toml
generate=(generate --config=text.toml --checkpoint=saved)

# It has learnt its line by heart, and goes on beyond its context.
quietly "${generate[@]}" --prompt='To be, or' --temperature=0 --tokens=33
[[ $(cat out.txt) == 'To be, or not to be.
To be, or not to be.' ]] || die "$(cat out.txt)"

# A seed is a text, the same with more than one thread of the program's own.
quietly "${generate[@]}" --temperature=4 --seed=1 && cp out.txt one.txt
quietly "${generate[@]}" --temperature=4 --seed=1
same_bytes one.txt out.txt
quietly "${generate[@]}" --temperature=4 --seed=2
cmp -s one.txt out.txt && die "two seeds, one text"
quietly "${generate[@]}" --temperature=4 --seed=2 --top-k=1 --tokens=5
(($(wc -c <out.txt) == 1 + 5 + 1)) || die "$(cat out.txt)"

fails_with 2 'trainer: no checkpoint is given; *' generate
fails_with 2 'trainer: --prompt: *' "${generate[@]}" --prompt='Ünd'
fails_with 2 'trainer: --top-p=0: *' "${generate[@]}" --top-p=0
fails_with 2 'trainer: --temperature=-1: must be a number from 0 to 100' \
  "${generate[@]}" --temperature=-1
fails_with 1 'trainer: no checkpoint in nowhere; *' \
  generate --config=text.toml --checkpoint=nowhere
fails_with 2 'trainer: tiny.toml:6: data.kind = "synthetic" has no text *' \
  generate --config=tiny.toml --checkpoint=saved
# Another model than that of the checkpoint.
fails_with 2 'trainer: *wte.weight*' \
  "${generate[@]}" --set model.kind=gpt_micro
