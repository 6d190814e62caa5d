#!/bin/bash
# Checks gpu_step's rows on a CPU, and its messages if it cannot run.
set -euo pipefail
die() {
  echo "FAILED: $*" >&2
  exit 1
}
readonly STEP=tools/bench/gpu_step/gpu_step

"$STEP" --device=cpu:0 --dtype=f32 --case=toy_mlp --seconds=0.2 --rounds=2 \
  --json >rows.txt
(($(wc -l <rows.txt) == 1)) || die "not one row: $(cat rows.txt)"
grep -q '^{"bench":"gpu_step","case":"toy_mlp f32 eager","ranks":1,"unit":"us/step","ours":[0-9.]*,"peer":null' \
  rows.txt || die "no row: $(cat rows.txt)"

# A case that does not run is reported, and the next one runs.
code=0
"$STEP" --device=cpu:0 --dtype=f32 --case=toy_gpt,toy_mlp --seconds=0.2 \
  --rounds=1 --json >rows.txt 2>err.txt || code=$?
((code == 1)) || die "exit code $code"
grep -q 'there is no case toy_gpt' err.txt || die "it says: $(cat err.txt)"
grep -q '"toy_mlp f32 eager"' rows.txt || die "toy_mlp did not run"

CUDA_VISIBLE_DEVICES='' "$STEP" --case=toy_mlp >rows.txt 2>err.txt &&
  die "it found a GPU"
(($(wc -l <err.txt) == 1)) || die "it says: $(cat err.txt)"
grep -qiE 'cuda|GPU' err.txt || die "it says: $(cat err.txt)"
"$STEP" --dtype=f8 2>err.txt && die "f8 is a dtype"
grep -q 'give f32, bf16' err.txt || die "it says: $(cat err.txt)"
