#!/bin/bash
# trainer profile, by the program: the parts of a step, of one rank and of two,
# and nothing is left of the run.
set -euo pipefail
. tests/tools/trainer_lib.sh

# Arguments of trainer profile beside the usual ones. Layers large enough that
# their ops have rows of their own on a machine that is busy with other things.
shows() {
  local op
  quietly profile --config=tiny.toml --seconds=0.2 \
    --set model.widths=256,256 "$@"
  for op in LinearForward LinearBackwardWeight 'outside ops'; do
    grep -q "^$op  *" out.txt || die "no $op in $(cat out.txt)"
  done
}

shows
grep -q '^a step takes .* samples/s on 1 rank, ' out.txt || die "$(cat out.txt)"
shows --ranks=2
grep -q ' samples/s on 2 ranks, ' out.txt || die "$(cat out.txt)"
[[ ! -e saved ]] || die "it wrote a checkpoint"

fails_with 2 'trainer: *train.device*: ops are timed on the CPU*' \
  profile --config=tiny.toml --set train.device=cuda
fails_with 2 'trainer: --seconds=0: *' profile --seconds=0
