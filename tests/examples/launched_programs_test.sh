#!/bin/bash
# Programs of troupe/troupe.h under `trainer launch`: their ranks in processes
# do the same as in threads of one.
set -euo pipefail
EXAMPLES=$PWD/examples
FILES=$PWD/tests/examples/cifar_files.py
. tests/tools/trainer_lib.sh

launched() {
  "$TRAINER" launch --nproc-per-node=2 --program="$EXAMPLES/$1/$1" -- "${@:2}" \
    >out.txt 2>err.txt || die "$1: $(cat out.txt err.txt)"
}

launched collectives
grep -qx 'all collectives are right on 4 ranks' out.txt ||
  die "collectives: $(cat out.txt)"
# One program after the other.
launched point_to_point
(($(grep -cx '\[[01]\] has 1' out.txt) == 4)) ||
  die "point_to_point: $(cat out.txt)"

launched ddp_toy
grep -qx 'the replicas are equal after a step' out.txt ||
  die "ddp_toy: $(cat out.txt)"

launched uneven_inputs
grep -qx 'both ranks have made 6 steps' out.txt ||
  die "uneven_inputs: $(cat out.txt)"

# Its own check decides; by processes, over the files of threads.
"$EXAMPLES/ddp_checkpoint/ddp_checkpoint" >out.txt || die "$(cat out.txt)"
launched ddp_checkpoint
grep -qx 'the resumed run has the same losses' out.txt ||
  die "ddp_checkpoint: $(cat out.txt)"

# An engine with checkpoints of its own, two models and their optimizers, steps
# between rollouts, a model that writes, and replicas of a pipeline.
for name in deepspeed_engine gan gpt_loop hybrid_loop policy_gradient; do
  "$EXAMPLES/$name/$name" >alone.txt || die "$name alone: $(cat alone.txt)"
  launched $name
  [[ $(cat out.txt) == "$(cat alone.txt)" ]] || die "$(diff out.txt alone.txt)"
done

# What rank 0 logs.
"$EXAMPLES/ddp_mnist/ddp_mnist" >alone.txt || die "alone: $(cat alone.txt)"
launched ddp_mnist
[[ $(cat out.txt) == "$(cat alone.txt)" ]] || die "$(diff out.txt alone.txt)"

# A Trainer: the first process has its callbacks, the other logs its test.
"$EXAMPLES/lightning_trainer/lightning_trainer" >alone.txt || die "alone"
launched lightning_trainer
diff <(grep -v '^\[1\]' out.txt) alone.txt || die "lightning_trainer: $(<out.txt)"
[[ ! -e lightning_trainer ]] || die "checkpoints are left"

# A device that is not there, in this build or on this machine, is an error that
# names it; GPUs train.
refused() {
  code=0
  "$EXAMPLES/ddp_mnist/ddp_mnist" "--device=$1" >out.txt 2>err.txt || code=$?
  ((code == 1)) && grep -qF "$2" err.txt
}
refused abacus 'no device is called "abacus"; write cpu, reference or cuda' ||
  die "code $code: $(cat err.txt)"
refused cuda:99 'cuda:99: this' || die "code $code: $(cat err.txt)"
refused cuda cuda || ((code == 0)) || die "code $code: $(cat err.txt)"

# The lines of both ranks, without the numbers that launcher and rank put before
# them.
losses() { grep -o 'epoch [0-9]*: [0-9.]*' "$1" | sort; }
"$EXAMPLES/average_gradients/average_gradients" >alone.txt || die "alone"
(($(losses alone.txt | wc -l) == 4)) || die "alone: $(cat alone.txt)"
launched average_gradients
[[ $(losses out.txt) == "$(losses alone.txt)" ]] ||
  die "$(diff out.txt alone.txt)"

# Small files of CIFAR-10's form, with the same numbers in processes.
python3 "$FILES" cifar 64 100
cifar=$EXAMPLES/ddp_cifar/ddp_cifar
"$cifar" cifar >alone.txt 2>err.txt || die "alone: $(cat alone.txt err.txt)"
(($(grep -c '^epoch [0-4]: loss [0-9.]*, accuracy [0-9.]*%$' alone.txt) == 5)) ||
  die "alone: $(cat alone.txt)"
launched ddp_cifar cifar
[[ $(cat out.txt) == "$(cat alone.txt)" ]] || die "$(diff out.txt alone.txt)"

# What is no folder of it is named.
code=0
"$cifar" nowhere >out.txt 2>err.txt || code=$?
((code == 1)) || die "code $code: $(cat err.txt)"
grep -q 'nowhere' err.txt || die "it says: $(cat err.txt)"

# Two hosts, with a `trainer launch` and certificates for each, here both on this
# machine.
quietly certs --dir=certs
port=$(python3 -c 'import socket
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    print(free.getsockname()[1])')
node() {
  "$TRAINER" launch --nnodes=2 --node-rank="$1" --master="127.0.0.1:$port" \
    --nproc-per-node=2 --certs=certs/node \
    --program="$EXAMPLES/elastic_ddp/elastic_ddp" >"node$1.txt" 2>"err$1.txt"
}
node 1 &
node 0 || die "node 0: $(cat node0.txt err0.txt)"
wait $! || die "node 1: $(cat node1.txt err1.txt)"

# Each host prints what its processes do.
for rank in 0 1 2 3; do
  out=node$((rank / 2)).txt
  for line in 'starts, one of 4' 'has the parameters of rank 0'; do
    grep -qF "[$rank] $line" "$out" || die "rank $rank in $out: $(cat "$out")"
  done
done
