#!/bin/bash
# Checks gpu_kernels' rows on a CPU, and its messages if it cannot run.
set -euo pipefail
die() {
  echo "FAILED: $*" >&2
  exit 1
}
readonly KERNELS=tools/bench/gpu_kernels/gpu_kernels

"$KERNELS" --device=cpu:0 --tiny --dtype=f32 --seconds=0.01 --rounds=2 --json \
  >rows.txt
(($(wc -l <rows.txt) == 9)) || die "not nine rows: $(cat rows.txt)"
for name in 'tiny linear' 'tiny 3x3' 'tiny 1x1'; do
  for way in f bd bw; do
    grep -q "\"case\":\"$name $way f32\",.*\"unit\":\"us\",\"ours\":[0-9.]" \
      rows.txt || die "no row of $name $way: $(cat rows.txt)"
  done
done

"$KERNELS" --device=cpu:0 --dtype=f32 --seconds=0.01 'linear f 4 8 2' >rows.txt
grep -q '^linear f 4 8 2 f32 .* us ' rows.txt || die "no row: $(cat rows.txt)"
"$KERNELS" --device=cpu:0 'linear f 4 8' 2>err.txt && die "a case of two"
grep -q 'is no case' err.txt || die "it says: $(cat err.txt)"
"$KERNELS" --device=cpu:0 --filter=resnet152 2>err.txt && die "resnet152"
grep -q -- "--filter=resnet152: no case has this in its name" err.txt || die "it says: $(cat err.txt)"

# It says in words that there is no GPU, or no CUDA.
CUDA_VISIBLE_DEVICES='' "$KERNELS" --tiny 2>err.txt && die "it found a GPU"
(($(wc -l <err.txt) == 1)) || die "it says: $(cat err.txt)"
CUDA_VISIBLE_DEVICES='' "$KERNELS" --gpus >rows.txt
head -1 rows.txt | grep -q '^0 devices' || die "GPUs: $(cat rows.txt)"
