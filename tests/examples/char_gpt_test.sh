#!/bin/bash
# The first steps of examples/char_gpt: the same losses by one rank, by two, and
# by two stages; and text from what they have saved.
set -euo pipefail
config=examples/char_gpt/char_gpt.toml
cd "$TEST_SRCDIR/$TEST_WORKSPACE"

# Without replicas: arguments of the trainer. Prints the losses of three steps.
losses() {
  tools/trainer train --config=$config --set train.steps=3 \
    --set train.global_batch_size=4 --set data.context=32 \
    --set data.val_fraction=0.01 --set log.every=1 \
    --set checkpoint.dir="$TEST_TMPDIR/saved" "$@" >"$TEST_TMPDIR/out.txt"
  grep -o '^step [0-9]*/3.*loss [0-9.]*' "$TEST_TMPDIR/out.txt" |
    sed 's/.*loss/loss/'
}

one=$(losses --ranks=1)
[[ $(wc -l <<<"$one") == 3 ]] || { cat "$TEST_TMPDIR/out.txt"; exit 1; }
two=$(losses --ranks=2)
stages=$(losses --set mesh.dp=1 --set mesh.pp=2 \
  --set 'mesh.cuts=["h.2"]')
if [[ $two != "$one" || $stages != "$one" ]]; then
  printf 'FAILED: one rank\n%s\ntwo\n%s\ntwo stages\n%s\n' \
    "$one" "$two" "$stages" >&2
  exit 1
fi

text=$(tools/trainer generate --config=$config --set data.context=32 \
  --checkpoint="$TEST_TMPDIR/saved" --prompt='The ' --tokens=40)
echo "$text"
[[ $text == 'The '* && ${#text} -gt 20 ]]
