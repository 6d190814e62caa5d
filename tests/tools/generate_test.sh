#!/bin/bash
# `trainer generate`, by the program: text of a model that it has just trained.
set -euo pipefail
. tests/tools/trainer_lib.sh

text_job saved 250
quietly train --config=text.toml
generate=(generate --config=text.toml --checkpoint=saved)

# Whatever class does not count, the padding of the last window does not, either:
# 84 tokens of 840 are tested, 83 of them are targets, and 4 of these ends of lines.
for ignored in -1:83 0:79 99:83; do
  quietly train --config=text.toml --set train.steps=1 --set checkpoint.dir= \
    --set "loss.ignore_index=${ignored%:*}"
  grep -q " of ${ignored#*:} samples" out.txt || die "$ignored: $(cat out.txt)"
done

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

# A text ends before a stop sequence, which no piece shows. Of what the text has,
# all is a second time unlikely; of tokens that are not the likeliest, none is left.
quietly "${generate[@]}" --prompt='To be' --temperature=0 --stop='not ' --stop=xyz
[[ $(cat out.txt) == 'To be, or ' ]] || die "$(cat out.txt)"
quietly "${generate[@]}" --prompt='To be, or' --temperature=0 --tokens=33 \
  --repetition-penalty=100
cp out.txt penalized.txt
quietly "${generate[@]}" --prompt='To be, or' --temperature=0 --tokens=33
cp out.txt likeliest.txt
cmp -s penalized.txt likeliest.txt && die "no penalty: $(cat penalized.txt)"
quietly "${generate[@]}" --prompt='To be, or' --temperature=4 --tokens=33 --min-p=1
same_bytes likeliest.txt out.txt

# Prompts of a file, and of a pipe, each with its seed; as objects, too.
printf 'To be\nor not\n' >prompts.txt
quietly "${generate[@]}" --prompts=prompts.txt --temperature=4 --seed=5 --tokens=9
cp out.txt both.txt
quietly "${generate[@]}" --prompt='To be' --temperature=4 --seed=5 --tokens=9
cp out.txt each.txt
quietly "${generate[@]}" --prompt='or not' --temperature=4 --seed=6 --tokens=9
{ echo && cat out.txt; } >>each.txt
same_bytes each.txt both.txt
"$TRAINER" "${generate[@]}" --prompts=/dev/stdin --temperature=0 --tokens=9 --json \
  --stop=.  <prompts.txt >out.txt 2>err.txt || die "$(cat err.txt)"
same_bytes out.txt <(cat <<'JSON'
{"prompt":"To be","text":", or not ","tokens":9,"finish_reason":"length"}
{"prompt":"or not","text":" to be","tokens":7,"finish_reason":"stop"}
JSON
)

# Several at a time, and without a cache: the same texts in the same order, also
# beyond the context, and by two ranks.
printf 'To be\nor not to be.\nT\nnot\nbe, or\n' >prompts.txt
many=("${generate[@]}" --prompts=prompts.txt --temperature=2 --seed=5 --tokens=30)
quietly "${many[@]}" && cp out.txt one.txt
for way in --no-cache --batch=2 --batch=8 '--batch=3 --no-cache' \
  '--batch=4 --json'; do
  # shellcheck disable=SC2086  # several words
  quietly "${many[@]}" $way
  [[ $way == *json ]] || same_bytes one.txt out.txt
done
(($(grep -c '"finish_reason":"length"}$' out.txt) == 5)) || die "$(cat out.txt)"
fails_with 2 'trainer: --batch=0: *' "${generate[@]}" --batch=0
printf 'To be\n\nor\n' >prompts.txt
fails_with 2 'trainer: prompts.txt:2: the line is empty; *' "${generate[@]}" \
  --prompts=prompts.txt
fails_with 2 'trainer: --prompt and --prompts: *' "${generate[@]}" \
  --prompts=prompts.txt --prompt=X
fails_with 2 'trainer: --repetition-penalty=0: *' "${generate[@]}" \
  --repetition-penalty=0
fails_with 2 'trainer: --stop=: *' "${generate[@]}" --stop=

# A model of two stages, with a micro-batch that is smaller than the others, by
# one rank and by as many as it can be cut for: the same text. No rank of
# several reads what is not its own.
stages=(--config=text.toml --set model.tie_head=false)
quietly train "${stages[@]}" --set train.steps=30 --set mesh.pp=2 \
  --set train.micro_batch_size=3 --set checkpoint.dir=stages
generate_cut=(generate "${stages[@]}" --checkpoint=stages --tokens=40
  --temperature=2 --top-k=9 --top-p=0.9 --seed=3)
quietly "${generate_cut[@]}" && cp out.txt whole.txt
quietly "${generate_cut[@]}" --no-cache
same_bytes whole.txt out.txt
for cut in mesh.pp=2 mesh.pp=4 'mesh.pp=2 --set mesh.virtual_stages=2' \
  'mesh.pp=2 --set mesh.schedule=zb_v' 'mesh.pp=2 --set mesh.schedule=search'; do
  # shellcheck disable=SC2086  # several words
  quietly "${generate_cut[@]}" --set $cut
  same_bytes whole.txt out.txt
done
quietly "${generate_cut[@]}" --set mesh.pp=2 --set 'mesh.cuts=["h.2"]' \
  --set mesh.dp=2 --threads=2
same_bytes whole.txt out.txt
fails_with 2 'trainer: --set mesh.pp: *' "${generate_cut[@]}" --set mesh.pp=40
fails_with 2 'trainer: --set mesh.cuts: *' \
  "${generate_cut[@]}" --set mesh.pp=2 --set 'mesh.cuts=["h.7"]'

fails_with 2 'trainer: no checkpoint is given; *' generate
fails_with 2 'trainer: --prompt: *' "${generate[@]}" --prompt='Ünd'
fails_with 2 'trainer: --top-p=0: *' "${generate[@]}" --top-p=0
fails_with 2 'trainer: --temperature=-1: must be a number from 0 to 100' \
  "${generate[@]}" --temperature=-1
fails_with 1 'trainer: no checkpoint in nowhere; *' \
  generate --config=text.toml --checkpoint=nowhere
fails_with 1 'trainer: no checkpoint in saved/best; only a run with keep_best keeps its best one there' \
  generate --config=text.toml --checkpoint=saved/best
fails_with 2 'trainer: tiny.toml:6: data.kind = "synthetic" has no text *' \
  generate --config=tiny.toml --checkpoint=saved
# Another text of as many characters: the same numbers stand for others.
tr 'To be' 'Xu cf' <input.txt >other.txt
for other in 'data.path=other.txt' 'data.tokenizer=bytes'; do
  fails_with 2 'trainer: --set data.*: saved/step-00000250 was trained on *: the same numbers stand for other texts; *' \
    "${generate[@]}" --set "$other" --prompt=X
done
fails_with 2 'trainer: *the data were of content *; go on with the same data, or start anew' \
  train --config=text.toml --resume --set data.path=other.txt \
  --set train.steps=300

# Another model than that of the checkpoint.
fails_with 2 "trainer: *is of another model; *h.0.ln_1.weight is f32*; model and data must be those of the run that wrote it, and here model.kind = \"gpt_micro\", data.kind = \"text\"*" \
  "${generate[@]}" --set model.kind=gpt_micro
# Texts with other numbers of characters.
printf 'abc\n%.0s' {1..40} >short.txt
for path in short.txt ''; do
  fails_with 2 'trainer: --set data.path: saved/step-00000250 was trained on tokens of another tokenizer "chars" than this one: *' \
    "${generate[@]}" --set data.path=$path
done

# Every dtype that trains has text: f64 where its kernels are.
for dtype in f64 bf16 f16; do
  device=cpu:0
  [[ $dtype != f64 ]] || device=reference:0
  of_dtype=(--config=text.toml --set train.precision="$dtype"
    --set train.device="$device")
  quietly train "${of_dtype[@]}" --set train.steps=2 --set train.loss_scale=1 \
    --set checkpoint.dir="$dtype"
  quietly generate "${of_dtype[@]}" --checkpoint="$dtype" --tokens=5 \
    --temperature=0
  cp out.txt whole.txt
  quietly generate "${of_dtype[@]}" --checkpoint="$dtype" --tokens=5 \
    --temperature=0 --set mesh.pp=2
  same_bytes whole.txt out.txt
done
