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
quietly plan --config=tiny.toml --ranks=4
[[ $(line mlp) == *'on 4 ranks (dp=4 pp=1), a step of 16 samples: 1 micro-batch of 4'* ]] ||
  die "$(cat out.txt)"

# Every schedule trains to the same bits, and so does what --grid prints.
quietly train "${piped[@]}" --set mesh.schedule=gpipe --set checkpoint.dir=gpipe
for schedule in 1f1b zb_h1 zb_h2 zb_v v_half v_min search; do
  quietly train "${piped[@]}" --set mesh.schedule=$schedule \
    --set checkpoint.dir=$schedule
done
quietly plan "${piped[@]}" --set mesh.schedule=zb_h1 --grid
sed -n '/^rank 0: F0 /,$p' out.txt >grid.txt
(($(wc -l <grid.txt) == 2)) || die "$(cat out.txt)"
quietly train "${piped[@]}" --set mesh.schedule_file=grid.txt \
  --set checkpoint.dir=file
for other in zb_h1 file; do
  same_bytes gpipe/step-00000020/model-00001-of-00002.safetensors \
    $other/step-00000020/model-00001-of-00002.safetensors
done
quietly train "${piped[@]}" --set mesh.virtual_stages=2 \
  --set 'model.widths=[16, 16, 16]' --set mesh.strict_order=true \
  --set checkpoint.dir=looped

echo 'rank 0: F0 F1 B0' >short.txt
fails_with 2 'trainer: --set mesh.schedule_file: short.txt: *1 tables for 2*' \
  plan "${piped[@]}" --set mesh.schedule_file=short.txt
fails_with 2 'trainer: --columns=1: *' plan --columns=1
