#!/bin/bash
# Programs of troupe/troupe.h under `trainer launch`: their ranks in processes
# do the same as in threads of one.
set -euo pipefail
EXAMPLES=$PWD/examples
. tests/tools/trainer_lib.sh

launched() {
  "$TRAINER" launch --nproc-per-node=2 --program="$EXAMPLES/$1/$1" \
    >out.txt 2>err.txt || die "$1: $(cat out.txt err.txt)"
}

launched collectives
grep -qx 'all collectives are right on 4 ranks' out.txt ||
  die "collectives: $(cat out.txt)"
launched ddp_toy
grep -qx 'the replicas are equal after a step' out.txt ||
  die "ddp_toy: $(cat out.txt)"
launched ddp_checkpoint
grep -qx 'the resumed run has the same losses' out.txt ||
  die "ddp_checkpoint: $(cat out.txt)"

# What rank 0 logs.
"$EXAMPLES/ddp_mnist/ddp_mnist" >alone.txt || die "alone: $(cat alone.txt)"
launched ddp_mnist
[[ $(cat out.txt) == "$(cat alone.txt)" ]] || die "$(diff out.txt alone.txt)"

# The lines of both ranks, without the numbers that launcher and rank put before
# them.
losses() { grep -o 'epoch [0-9]*: [0-9.]*' "$1" | sort; }
"$EXAMPLES/average_gradients/average_gradients" >alone.txt || die "alone"
(($(losses alone.txt | wc -l) == 4)) || die "alone: $(cat alone.txt)"
launched average_gradients
[[ $(losses out.txt) == "$(losses alone.txt)" ]] ||
  die "$(diff out.txt alone.txt)"
