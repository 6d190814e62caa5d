#!/bin/bash
# A run that was interrupted ends at the same bits as one that was not, and the
# same run twice gives the same bits.
set -euo pipefail
. tests/tools/trainer_lib.sh

# run FOLDER STEPS OPTIONS...: trains tiny.toml until step STEPS.
run() {
  local folder=$1 steps=$2
  shift 2
  quietly train --config=tiny.toml --set checkpoint.dir="$folder" \
    --set train.steps="$steps" "$@"
}

# The options are those of a layout of ranks.
check() {
  local name=$1
  shift
  run "$name/whole" 40 "$@"
  run "$name/again" 40 "$@"
  run "$name/parts" 17 "$@" # in the second epoch
  run "$name/parts" 40 --resume "$@"
  grep -q "going on from $name/parts/step-00000017" out.txt ||
    die "it did not resume"
  ! grep -q 'where the plan differs' out.txt || die "$(cat out.txt)"
  local file
  for file in "$name"/whole/step-00000040/*.safetensors; do
    same_bytes "$file" "${file/whole/again}"
    same_bytes "$file" "${file/whole/parts}"
  done
}

check one_rank
check two_ranks --ranks=2
check two_stages --set mesh.pp=2 --set mesh.cuts=2 \
  --set train.micro_batch_size=4
check two_by_two --ranks=4 --set mesh.pp=2 --set mesh.cuts=2 \
  --set train.micro_batch_size=4

# The layout may change between runs: the order of data continues.
run moved 17 --ranks=2
run moved 40 --resume --set mesh.pp=2 --set mesh.cuts=2
grep -qx "where the plan differs from the checkpoint's (field: then, now):" \
  out.txt || die "$(cat out.txt)"
grep -qx '  mesh\[dp\].size: 2, 1' out.txt || die "$(cat out.txt)"
grep -qx '  cuts: \[\], \["2"\]' out.txt || die "$(cat out.txt)"
[[ $(names_in moved/step-00000040) == model-00001-of-00002.safetensors* ]] ||
  die "no shards: $(names_in moved/step-00000040)"

# A run without remaining steps is no error, and the printed command resumes it.
run one_rank/whole 40 --resume
grep -q 'its 40 steps are all that was asked for' out.txt || die "$(cat out.txt)"
grep -qx 'checkpoint: one_rank/whole/step-00000040, from before this run' \
  out.txt || die "$(cat out.txt)"
command=$(sed -n 's/^to go on: //p' out.txt)
want="$TRAINER train --config=tiny.toml --set checkpoint.dir=one_rank/whole"
want+=" --set train.steps=80 --resume"
[[ $command == "$want" ]] || die "it says: $command"
# The printed command is valid in a shell.
bash -c "$command" >out.txt || die "$command failed"
grep -q 'going on from one_rank/whole/step-00000040' out.txt ||
  die "$(cat out.txt)"

# The log of a run that goes on from before its end has each step once, as after
# a crash.
log=(--set log.every=1 --set log.file=logged.jsonl)
run logged 17 "${log[@]}"
cp -r logged crashed
run logged 25 --resume "${log[@]}"
rm -r logged
mv crashed logged
run logged 40 --resume "${log[@]}"
steps=$(sed -n 's/^{"kind":"train","step":\([0-9]*\),.*/\1/p' logged.jsonl)
[[ $steps == "$(seq 40)" ]] || die "logged: $steps"

# A schedule spans the run. A run that goes on behind the end of one says so.
cosine=(--set optimizer.schedule=cosine --set log.every=1)
run spans 40 "${cosine[@]}" --set log.file=spans.jsonl
! grep -q '"lr":0.0[,}]' spans.jsonl || die "$(cat spans.jsonl)"
! grep -q '^warning' out.txt || die "$(cat out.txt)"
run ends 20 "${cosine[@]}" --set optimizer.schedule_steps=20
! grep -q '^warning' out.txt || die "$(cat out.txt)"
run ends 40 "${cosine[@]}" --set optimizer.schedule_steps=20 --resume
want='warning: the schedule "cosine" of the learning rate ends after 20 of 40 '
want+='steps, and the rate then stays at 0; optimizer.schedule_steps = 20 '
want+='would have to be larger'
grep -qxF -e "$want" out.txt || die "$(cat out.txt)"

# A model with fewer tensors than the checkpoint resumes if allowed, with a
# note.
run less 17
run less 40 --resume --set optimizer.momentum=0 \
  --set checkpoint.allow_unexpected=true
grep -q '^unexpected in it, left out: 1.bias.momentum_buffer, ' out.txt ||
  die "$(cat out.txt)"
run less 50 --resume --set checkpoint.allow_missing=true
grep -q '^missing from it, with initial values: 1.bias.momentum_buffer, ' \
  out.txt || die "$(cat out.txt)"

# Options suffice without a file, for the first run and for resuming.
options=(--set data.kind=synthetic --set model.kind=linear)
options+=(--set checkpoint.dir=bare)
quietly train "${options[@]}" --set train.steps=3
want="to go on: $TRAINER train ${options[*]} --set train.steps=6 --resume"
grep -qxF -e "$want" out.txt || die "$(cat out.txt)"
bash -c "${want#to go on: }" >out.txt || die "${want#to go on: } failed"
grep -q 'going on from bare/step-00000003' out.txt || die "$(cat out.txt)"

# A trace counts steps from the run's first one, and reports when it is empty.
run one_rank/whole 92 --resume --trace=trace.json
grep -qx 'trace: trace.json (open it at ui.perfetto.dev)' out.txt ||
  die "$(cat out.txt)"
grep -q '"step":90\b' trace.json || die "no step 90"
run one_rank/whole 96 --resume --trace=trace.json
grep -q '^trace: trace.json is empty, ' out.txt || die "$(cat out.txt)"

# Epochs stay epochs when the batch size changes on the way: 512 samples, 12
# steps of 64 end in the middle of epoch 2, 2 of 128 end it, 4 are epoch 3.
glyphs=(--set data.kind=glyphs --set data.train_count=512)
run epochs 12 "${glyphs[@]}" --set train.global_batch_size=64
quietly train --config=tiny.toml "${glyphs[@]}" --resume \
  --set checkpoint.dir=epochs --set train.global_batch_size=128 \
  --set train.epochs=3 --set log.file=epochs.jsonl --set log.every=1
grep -q '^done: 6 steps' out.txt || die "$(cat out.txt)"
evaluated=$(sed -n 's/^{"kind":"evaluation","step":\([0-9]*\),.*/\1/p' \
  epochs.jsonl)
[[ $(echo $evaluated) == '14 18' ]] || die "evaluated: $(cat epochs.jsonl)"
epochs=$(sed -n 's/^{"kind":"train".*"epoch":\([0-9]*\),.*/\1/p' epochs.jsonl)
[[ $(echo $epochs) == '2 2 3 3 3 3' ]] || die "epochs: $(cat epochs.jsonl)"
grep -q -e '--set train.epochs=6 --resume' out.txt || die "$(cat out.txt)"
