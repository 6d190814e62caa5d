#!/bin/bash
# device = "cuda" from a config file on: one and two GPUs, a pipeline,
# checkpoints, resuming, and what is said where GPUs are missing.
set -euo pipefail
. tests/tools/emulated/emulated_lib.sh

# --- Training, with the bits of a straight run after a resumed one ---

# The options are those of a layout of ranks.
check() {
  local name=$1
  shift
  run "$name/whole" 40 "$@"
  says ', Emulated GPU, compute 9.0'
  says 'test loss'
  run "$name/parts" 17 "$@"
  run "$name/parts" 40 --resume "$@"
  says "going on from $name/parts/step-00000017"
  says_not 'where the plan differs'
  says_not 'warning'
  same_bits "$name/whole" "$name/parts"
}

check one_rank
check two_ranks --ranks=2
check two_stages --set mesh.pp=2 --set mesh.cuts=2 \
  --set train.micro_batch_size=4
# Both ranks on one GPU, with the bits of one GPU each.
check one_gpu --ranks=2 --set train.device=cuda:1
same_bits two_ranks/whole one_gpu/whole

# The numbers are the CPU's, but for last bits.
loss_of() {
  sed -n 's/.*test loss \([0-9.]*\).*/\1/p' out.txt | tail -1
}
run loss 40
gpu=$(loss_of)
quietly train --config=tiny.toml --set checkpoint.dir=cpu --set train.steps=40
awk -v a="$gpu" -v b="$(loss_of)" \
  'BEGIN { d = a - b; exit !(a > 0 && d < 1e-3 && -d < 1e-3) }' ||
  die "test losses differ: $gpu and $(loss_of)"

# A checkpoint goes from GPU to CPU and back.
run moved 17
quietly train --config=gpu.toml --set checkpoint.dir=moved --resume \
  --set train.steps=30 --set train.device=cpu:0
says '  device: "cuda", "cpu:0"'
run moved 40 --resume
says '  device: "cpu:0", "cuda"'

# --- Text, with keys and values in the memory of the GPU ---

text_job text 150
quietly train --config=text.toml
printf 'To be\nor not\nT\n' >prompts.txt
generate=(generate --config=text.toml --checkpoint=text --prompts=prompts.txt
  --tokens=24 --temperature=0)
quietly "${generate[@]}" && cp out.txt cpu.txt
for way in --no-cache --batch=3 '--batch=2 --no-cache' --batch=1; do
  # shellcheck disable=SC2086  # several words
  quietly "${generate[@]}" --set train.device=cuda $way
  same_bytes cpu.txt out.txt
done

# --- What is missing, in words ---

at="trainer: gpu.toml:$DEVICE_LINE"
on_two='this process sees 2 GPUs'
fails_with 1 "$at: 4 ranks of this host need a GPU each, and $on_two; run \
fewer ranks, or put all on one with device = \"cuda:0\"" \
  train --config=gpu.toml --ranks=4
EMULATED_GPUS=4 run four 20 --ranks=4

fails_with 1 "trainer: --set train.device: there is no cuda:9: $on_two; \
set CUDA_VISIBLE_DEVICES to choose which" \
  train --config=gpu.toml --set train.device=cuda:9
sed -i.old 's/"cuda"/"cuda:9"/' gpu.toml
fails_with 1 "$at: there is no cuda:9: $on_two; set \
CUDA_VISIBLE_DEVICES to choose which" train --config=gpu.toml
mv gpu.toml.old gpu.toml

export CUDA_VISIBLE_DEVICES=1
run visible 20
fails_with 1 "$at: 2 ranks of this host need a GPU each, and this process \
sees 1 GPU; *" train --config=gpu.toml --ranks=2
export CUDA_VISIBLE_DEVICES=
fails_with 1 "$at: there is no cuda:0: this process sees 0 GPUs; *" \
  train --config=gpu.toml
unset CUDA_VISIBLE_DEVICES

fails_with 2 "trainer: --set train.device: train.device = \"gpu\": no device is \
called \"gpu\"; *" train --config=gpu.toml --set train.device=gpu

# --- A GPU that breaks ends the process, which says what ran there ---

EMULATED_BREAKS=200 fails_with 1 "trainer: *cuda:? failed: *\
cudaErrorIllegalAddress*; in flight: *" \
  train --config=gpu.toml --set checkpoint.dir=broken

# --- The ordinary program of a machine without a GPU ---

code=0
"$CPU_TRAINER" train --config=gpu.toml >out.txt 2>err.txt || code=$?
[[ $code == 1 && $(cat err.txt) == "$at: "* ]] || die "$code: $(cat err.txt)"
doctor=$("$CPU_TRAINER" doctor --port=29433 || true)
if [[ $doctor == *'built without CUDA'* ]]; then
  [[ $(cat err.txt) == "$at: no kernels for cuda:0: this program was built \
without CUDA; build it with --config=cuda, or use cpu:0" ]] ||
    die "$(cat err.txt)"
fi

# --- The doctor ---

CUDA_VISIBLE_DEVICES=1,0 "$TRAINER" doctor --port=29433 >out.txt || true
cat out.txt
says 'GPUs'
says ' 2, of CUDA_VISIBLE_DEVICES=1,0'
says 'compute 9.0, 4 multiprocessors, PCI 0000:11:00.0'
says 'P2P (NVLink) to cuda:1'
says 'emulated products, emulated convolutions, emulated attention, NCCL '
says 'knows CUDA up to '
CUDA_VISIBLE_DEVICES=7 "$TRAINER" doctor --port=29433 >out.txt &&
  die "no GPU is no problem: $(cat out.txt)"
says 'of CUDA_VISIBLE_DEVICES=7'
says 'do: unset it, or write numbers of GPUs that nvidia-smi lists'
