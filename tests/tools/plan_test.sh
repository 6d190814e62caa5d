#!/bin/bash
# trainer plan, by the program: what it shows is what a run does, and what it
# prints as a schedule a run takes. Nothing is trained.
set -euo pipefail
. tests/tools/trainer_lib.sh

# Two stages, four micro-batches.
piped=(--config=tiny.toml --set 'model.widths=[16, 16]' --set mesh.pp=2
  --set train.micro_batch_size=4)

# The line of the output that begins with $1.
line() {
  grep -m1 "^$1" out.txt || die "no $1 in $(cat out.txt)"
}

# The runs that saved into $1 and $2 have the same weights, however their stages
# are cut.
same_model() {
  local run
  for run in "$@"; do
    quietly export --checkpoint="$run" --out="$run.safetensors"
  done
  same_bytes "$1.safetensors" "$2.safetensors"
}

quietly plan "${piped[@]}" --columns=40
[[ $(line mlp) == *'on 2 ranks (dp=1 pp=2), schedule 1f1b, a step of 16 samples: 4 micro-batches of 4 on each replica' ]] ||
  die "$(cat out.txt)"
line 'rank 0: F0' >line.txt
(($(wc -c <line.txt) == 49)) || die "not 40 columns: $(cat line.txt)"
line 'bubble: ' >line.txt
line 'memory expected: ' >line.txt
[[ ! -e saved ]] || die "it wrote a checkpoint"

quietly plan "${piped[@]}" --measure
grep -Eq '^a step takes about [0-9.e-]+ ms; one rank would take' out.txt ||
  die "$(cat out.txt)"
grep -Eq '^stage +rank +from +parameters +forward +backward +inputs' out.txt ||
  die "$(cat out.txt)"
# Cuts by measured times, whatever they are, train as others do.
quietly plan "${piped[@]}" --set mesh.balance=measured
grep -Eq '^a step takes about [0-9.e-]+ ms' out.txt || die "$(cat out.txt)"
quietly train "${piped[@]}" --set mesh.balance=measured \
  --set mesh.schedule=search --set checkpoint.dir=measured
# What does not fit is told, or refused where cuts would have to fit.
quietly plan "${piped[@]}" --set mesh.memory_limit=100
grep -Eq '^does not fit: rank 1 of the pipeline needs .*, .* more than mesh.memory_limit$' \
  out.txt || die "$(cat out.txt)"
fails_with 2 'trainer: --set mesh.memory_limit: no cuts keep what a rank holds within 100 bytes: at best, pp *' \
  plan "${piped[@]}" --set mesh.memory_limit=100 --set mesh.balance=measured
quietly plan --config=tiny.toml --ranks=4
[[ $(line mlp) == *'on 4 ranks (dp=4 pp=1), a step of 16 samples: 1 micro-batch of 4'* ]] ||
  die "$(cat out.txt)"

# The list of meshes has the run's ranks, and settings that a run takes.
quietly plan --config=tiny.toml --set 'model.widths=[16, 16]' --ranks=2 --meshes
line 'meshes of 2 ranks for global batches of 16' >line.txt
(($(grep -c '^[* ] [12] .* ms ' out.txt) >= 2)) || die "$(cat out.txt)"
grep -Eq '^[* ] 2 +1 +1 +- +- +[0-9]+ x [0-9]+ +- +3 +' out.txt ||
  die "no ZeRO 3 in $(cat out.txt)"
settings=$(sed -n 's/^the fastest, as settings: //p' out.txt)
# shellcheck disable=SC2086
quietly train --config=tiny.toml --set 'model.widths=[16, 16]' $settings \
  --set checkpoint.dir=listed
quietly plan --config=tiny.toml --set 'model.widths=[16, 16]' --ranks=2 --meshes \
  --memory=100 --bandwidth=1e9
grep -Eq '^not dp 2, pp 1.*: needs .* a rank, .* more than 100 bytes; raise the limit' out.txt ||
  die "$(cat out.txt)"
line 'none fits; add ranks, raise mesh.memory_limit' >line.txt
grep -q '^not .*tp 2, pp 1: .*no layer of the model is split' out.txt ||
  die "$(cat out.txt)"
fails_with 2 'trainer: --bandwidth=0: *' plan --meshes --bandwidth=0

# A run chooses its mesh itself, says how to fix it, and goes on with it. A limit
# that nothing keeps is an error with what is missing.
auto=(--config=tiny.toml --set 'model.widths=[16, 16]' --ranks=2 --set mesh=auto)
quietly train "${auto[@]}" --set checkpoint.dir=auto
grep -Eq '^mesh: dp [12], pp [12].* ms a step.*; to have it always: --set mesh.auto=false' \
  out.txt || die "$(cat out.txt)"
settings=$(sed -n 's/^mesh: .*; to have it always: //p' out.txt)
# shellcheck disable=SC2086
quietly train "${auto[@]}" $settings --set checkpoint.dir=fixed
same_model auto fixed
quietly train "${auto[@]}" --set checkpoint.dir=auto --resume --set train.steps=40
! grep -q '^mesh: ' out.txt || die "$(cat out.txt)"
quietly launch --nproc-per-node=2 -- train "${auto[@]}" --set checkpoint.dir=spanning
grep -q '^mesh: dp ' out.txt || die "$(cat out.txt)"
# Sequence parallelism is for the meshes with ranks along tp.
quietly train "${auto[@]}" --set mesh.sequence_parallel=true \
  --set checkpoint.dir=shared
grep -q '^mesh: .* --set mesh.sequence_parallel=false' out.txt || die "$(cat out.txt)"
fails_with 2 'trainer: *mesh.memory_limit: no mesh of 2 ranks fits mesh.memory_limit = 100 bytes: *too much; raise the limit*' \
  train "${auto[@]}" --set mesh.memory_limit=100
fails_with 2 'trainer: *mesh.cuts: mesh.cuts is for one mesh, and mesh.auto compares several; remove one of them' \
  train "${auto[@]}" --set 'mesh.cuts=[1]'
fails_with 2 'trainer: --set mesh: mesh = "best", must be "auto", or a section ?mesh?' \
  train --config=tiny.toml --set mesh=best

# A rank's share is cut as it comes.
quietly plan "${piped[@]}" --set train.micro_batch_size=6
[[ $(line mlp) == *'3 micro-batches of 6, the last of 4, on each replica' ]] ||
  die "$(cat out.txt)"
fails_with 2 'trainer: --set train.micro_batch_size: train.micro_batch_size = 17 is more than train.global_batch_size / mesh.dp = 16 / 1; use at most 16' \
  plan "${piped[@]}" --set train.micro_batch_size=17

# What passes a stage by is shown with it, and trains to the bits of one rank.
cat >images.toml <<'TOML'
[data]
kind = "synthetic"
input_shape = [8, 8, 1]
train_count = 256
test_count = 32

[train]
steps = 20
global_batch_size = 16
micro_batch_size = 4
TOML
skips=(--config=images.toml --set 'model.layers=[
  "conv 4 3 pad=1", "stash 1", "maxpool 2", "conv 4 3 pad=1", "relu",
  "convtranspose 4 2 stride=2", "popconcat 1", "flatten", "linear 10"]')
quietly plan "${skips[@]}" --set mesh.pp=3 --set 'mesh.cuts=[3, 5]'
(($(grep -c 'with skip connection 1, f32\[4, ' out.txt) == 2)) ||
  die "$(cat out.txt)"
quietly train "${skips[@]}" --set checkpoint.dir=whole
quietly train "${skips[@]}" --set mesh.pp=2 --set 'mesh.cuts=[3]' \
  --set checkpoint.dir=cut
same_model whole cut

# Every schedule trains to the same bits, and so does what --grid prints.
quietly train "${piped[@]}" --set mesh.schedule=gpipe --set checkpoint.dir=gpipe
for schedule in 1f1b zb_h1 zb_h2 zb_v v_half v_min search; do
  quietly train "${piped[@]}" --set mesh.schedule=$schedule \
    --set checkpoint.dir=$schedule
done
"$TRAINER" plan "${piped[@]}" --set mesh.schedule=zb_h1 --grid >grid.txt
(($(wc -l <grid.txt) == 2)) || die "$(cat grid.txt)"
quietly train "${piped[@]}" --set mesh.schedule_file=grid.txt \
  --set checkpoint.dir=file
for other in zb_h1 file; do
  same_bytes gpipe/step-00000020/model-00001-of-00002.safetensors \
    $other/step-00000020/model-00001-of-00002.safetensors
done
# The file is all that --grid prints, whatever else is asked for.
"$TRAINER" plan "${piped[@]}" --set mesh.schedule=1f1b --grid --columns=40 \
  --measure >measured.txt
(($(wc -l <measured.txt) == 2)) || die "$(cat measured.txt)"
quietly train "${piped[@]}" --set mesh.schedule_file=measured.txt \
  --set checkpoint.dir=measured_file
same_bytes gpipe/step-00000020/model-00001-of-00002.safetensors \
  measured_file/step-00000020/model-00001-of-00002.safetensors
# Measured cuts may put other parts of the model into each file.
same_model gpipe measured
quietly train "${piped[@]}" --set mesh.virtual_stages=2 \
  --set 'model.widths=[16, 16, 16]' --set mesh.strict_order=true \
  --set checkpoint.dir=looped

# A GPT whose head is its table of tokens: the first stage and the last have it.
quietly plan --set model.kind=gpt_nano --set data.kind=text --set mesh.pp=2 \
  --set train.global_batch_size=16 --set train.micro_batch_size=4
[[ $(line wte.weight) == *' parameters: a copy in each of the stages 0, 1' ]] ||
  die "$(cat out.txt)"

echo 'rank 0: F0 F1 B0' >short.txt
fails_with 2 'trainer: --set mesh.schedule_file: short.txt: *1 tables where the mesh has pp = 2*' \
  plan "${piped[@]}" --set mesh.schedule_file=short.txt
fails_with 2 'trainer: --columns=1: *' plan --columns=1
