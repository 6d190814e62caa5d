#!/bin/bash
# examples/ddp_cifar on small files of CIFAR-10's form learns, in threads and in
# two processes with the same numbers.
set -euo pipefail
PROGRAM=$PWD/examples/ddp_cifar/ddp_cifar
. tests/tools/trainer_lib.sh

# Labels show as brightness.
mkdir cifar
python3 - cifar <<'PYTHON'
import random, sys
rng = random.Random(0)
def write(name, count):
    with open("%s/%s.bin" % (sys.argv[1], name), "wb") as f:
        for _ in range(count):
            label = rng.randrange(10)
            pixels = [20 * label + rng.randrange(64) for _ in range(3072)]
            f.write(bytes([label] + pixels))
for i in range(1, 6):
    write("data_batch_%d" % i, 64)
write("test_batch", 100)
PYTHON

"$PROGRAM" cifar >alone.txt 2>err.txt || die "alone: $(cat alone.txt err.txt)"
(($(grep -c '^epoch [0-4]: loss [0-9.]*, accuracy [0-9.]*%$' alone.txt) == 5)) ||
  die "alone: $(cat alone.txt)"
"$TRAINER" launch --nproc-per-node=2 --program="$PROGRAM" -- cifar >out.txt \
  2>err.txt || die "launched: $(cat out.txt err.txt)"
[[ $(cat out.txt) == "$(cat alone.txt)" ]] || die "$(diff out.txt alone.txt)"

# What is no folder of it is named.
code=0
"$PROGRAM" nowhere >out.txt 2>err.txt || code=$?
((code == 1)) || die "code $code: $(cat err.txt)"
grep -q 'nowhere' err.txt || die "it says: $(cat err.txt)"
