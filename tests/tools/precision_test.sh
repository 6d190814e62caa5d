#!/bin/bash
# train.precision, by the program: networks reach the losses of f32 in 16 bits,
# on one rank and on several, and resume from their checkpoints.
set -euo pipefail
. tests/tools/trainer_lib.sh

# Prints the last loss of a training.
last_loss() {
  sed -n 's/^step .*loss \([0-9.]*\).*/\1/p' out.txt | tail -n 1
}

# Whether $1 is within $3 percent of $2.
close() {
  awk -v a="$1" -v b="$2" -v percent="$3" \
    'BEGIN { d = a - b; if (d < 0) d = -d; exit !(d <= b * percent / 100) }'
}

# Arguments of the trainer; the losses of 16 bits follow those of f32.
learns() {
  local f32 precision
  quietly train "$@"
  f32=$(last_loss)
  [[ -n $f32 ]] || die "$(cat out.txt)"
  for precision in bf16 f16; do
    quietly train "$@" --set train.precision=$precision \
      --set checkpoint.replace=true --set train.loss_scale=128
    close "$(last_loss)" "$f32" 5 ||
      die "$* in $precision: loss $(last_loss), in f32 $f32"
  done
}

tiny=(--config=tiny.toml --set log.every=1)
learns "${tiny[@]}"
learns "${tiny[@]}" --ranks=2 --set checkpoint.dir=two
learns "${tiny[@]}" --set model.kind=lenet --set data.kind=glyphs \
  --set checkpoint.dir=lenet
learns "${tiny[@]}" --set model.kind=resnet18 --set train.steps=3 \
  --set 'data.input_shape=[32, 32, 3]' --set train.global_batch_size=4 \
  --set checkpoint.dir=resnet
grep -v momentum tiny.toml >gpt.toml
text=(--config=gpt.toml --set log.every=1 --set model.kind=gpt_nano --set data.kind=text
  --set data.context=16 --set checkpoint.dir=gpt --set train.steps=4
  --set optimizer.kind=adamw --set optimizer.lr=1e-3
  --set data.val_fraction=0.001)
learns "${text[@]}"

# In f16 without a loss scale the trainer chooses one and prints it.
quietly train "${tiny[@]}" --set train.precision=f16 --set checkpoint.dir=auto \
  --set log.file=auto.jsonl --set train.loss_scale_init=1073741824
grep -q '^loss scale: [0-9.e+]*; [0-9]* steps were skipped' out.txt ||
  die "$(cat out.txt)"
grep -q '"skipped_steps":[1-9]' auto.jsonl || die "$(cat auto.jsonl)"
# A resumed run goes on counting the steps that are skipped.
skipped() {
  sed -n 's/.*"skipped_steps":\([0-9]*\).*/\1/p' auto.jsonl | tail -1
}
before=$(skipped)
quietly train "${tiny[@]}" --set train.precision=f16 --set checkpoint.dir=auto \
  --set log.file=auto.jsonl --set train.loss_scale_init=1073741824 \
  --set train.steps=30 --resume
(($(skipped) >= before)) || die "$before skipped, then $(skipped)"
# Gradients are summed in another dtype than their own.
quietly train "${tiny[@]}" --ranks=2 --set comm.reduction_dtype=bf16 \
  --set checkpoint.dir=rounded

# The faster precision is chosen once, kept by resumed runs, and the same in all
# processes.
quietly train "${text[@]}" --set train.precision=auto --set checkpoint.dir=chosen
grep -Eq '^precision (f32|bf16): a step of one rank takes f32 .* ms, bf16 .* ms$' \
  out.txt || die "$(cat out.txt)"
quietly train "${text[@]}" --set train.precision=auto --set checkpoint.dir=chosen \
  --set train.steps=6 --resume
! grep -q '^precision ' out.txt || die "$(cat out.txt)"
quietly generate --config=gpt.toml --set model.kind=gpt_nano \
  --set data.kind=text --set data.context=16 --set train.precision=auto \
  --checkpoint=chosen --tokens=3
quietly launch --nproc-per-node=2 -- train "${text[@]}" \
  --set train.precision=auto --set checkpoint.dir=both
grep -q 'precision .*: a step of one rank' out.txt || die "$(cat out.txt)"

# Weights are saved in their precision and rejected in any other.
quietly generate --config=gpt.toml --set model.kind=gpt_nano \
  --set data.kind=text --set data.context=16 --set train.precision=f16 \
  --checkpoint=gpt --tokens=3
fails_with 2 'trainer: tiny.toml: saved/* mismatched: 1.bias is f16*' \
  train "${tiny[@]}" --set train.steps=30 --resume --set train.precision=f32
fails_with 2 'trainer: --set train.precision: train.precision = "f8"*' \
  train "${tiny[@]}" --set train.precision=f8
fails_with 2 'trainer: --set train.precision: train.precision = "f64" *' \
  train "${tiny[@]}" --set train.precision=f64
