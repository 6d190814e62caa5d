#!/bin/bash
# The first steps of examples/resnet18_cifar, on small files of CIFAR-10's form:
# what one rank computes, two ranks and two stages compute, in one process and in
# two. A batch norm sees a micro-batch, or with sync_batch_norm those that the
# ranks have at the same time, so runs are alike where these are:
#
#     run              micro-batches of a step      samples of a batch norm
#     whole            1 of 8                       8
#     two              1 of 4 a rank, synchronised  8
#     halves, stages   2 of 4                       4
#     alone            1 of 4 a rank                4
set -euo pipefail
config=$PWD/examples/resnet18_cifar/resnet18_cifar.toml
files=$PWD/tests/examples/cifar_files.py
. tests/examples/losses_lib.sh

python3 "$files" cifar 8 16

# Rounding flips a ReLU here and there, which on batches as small as these turns a
# gradient by a hundredth: a small rate keeps that out of the losses. Measured
# between `whole` and `two`: 2.5e-4; between `whole` and `alone`: 7e-2.
common=(--config="$config" --set data.path=cifar --set train.steps=3
  --set train.global_batch_size=8 --set optimizer.lr=0.01)
stages=(--set mesh.dp=1 --set mesh.pp=2 --set mesh.cuts=layer3
  --set train.micro_batch_size=4)

# weights NAME: of the last checkpoint, with all running statistics, in one file.
# Checkpoints have 90 MB, and go.
weights() {
  quietly export --checkpoint="$1" --out="$1.safetensors"
  rm -r "$1"
}

# Same micro-batches in the same order: the same bits, wherever the stages are.
train_as halves --ranks=1 --set train.micro_batch_size=4
(($(grep -c '^train' halves.txt) == 3)) || die "$(cat halves.txt)"
grep -q '^evaluation 3 ' halves.txt || die "$(cat halves.txt)"
train_as stages "${stages[@]}"
in_two_processes stages_apart "${stages[@]}"
same_losses halves stages stages_apart
for run in halves stages stages_apart; do weights "$run"; done
same_bytes halves.safetensors stages.safetensors
same_bytes halves.safetensors stages_apart.safetensors

# Same bits wherever the ranks are; up to rounding those of one rank that has the
# whole batch, in training and in what the running statistics make of a test.
train_as whole --ranks=1
train_as two --ranks=2
in_two_processes two_apart --ranks=2
same_losses two two_apart
near_losses 5e-3 whole two
for run in whole two two_apart; do weights "$run"; done
same_bytes two.safetensors two_apart.safetensors

# Statistics of each rank's own samples are others.
train_as alone --ranks=2 --set model.sync_batch_norm=false
far_losses 5e-3 whole alone
grep '^train' alone.txt >alone_train.txt
grep '^train' halves.txt >halves_train.txt
near_losses 5e-3 halves_train alone_train

# Stopped and resumed: the bits of one run.
train_as resumed --ranks=2 --set train.steps=1
train_as resumed --ranks=2 --resume
grep -q 'going on from resumed/step-00000001' out.txt || die "$(cat out.txt)"
weights resumed
same_bytes two.safetensors resumed.safetensors

# What is wrong is named: the file and the byte, the key and what there is.
refused() {
  fails_with "$1" "$2" train "${common[@]}" "${@:3}"
}
mkdir short label
cp cifar/* short
truncate -s 3173 short/data_batch_3.bin
refused 1 'trainer: *short/data_batch_3.bin: truncated at byte 3173: records *' \
  --set data.path=short
cp cifar/* label
printf '\115' | dd of=label/test_batch.bin bs=1 seek=3073 conv=notrunc status=none
refused 1 'trainer: *label/test_batch.bin: label 77 at byte 3073 *' \
  --set data.path=label
rm label/data_batch_5.bin
refused 1 'trainer: *label/data_batch_5.bin*' --set data.path=label
refused 2 'trainer: *model.kind = "resnet19"*' --set model.kind=resnet19
refused 2 'trainer: *"gpt_nano"*tokens*' --set model.kind=gpt_nano
refused 2 'trainer: *train.precision*' --set train.precision=f8
refused 2 'trainer: *layer9*' --set mesh.dp=1 --set mesh.pp=2 \
  --set mesh.cuts=layer9
