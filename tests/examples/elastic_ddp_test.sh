#!/bin/bash
# examples/elastic_ddp on two hosts: a `trainer launch` for each, with
# certificates, here both on this machine.
set -euo pipefail
PROGRAM=$PWD/examples/elastic_ddp/elastic_ddp
. tests/tools/trainer_lib.sh

quietly certs --dir=certs
port=$(python3 -c 'import socket
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    print(free.getsockname()[1])')
node() {
  "$TRAINER" launch --nnodes=2 --node-rank="$1" --master="127.0.0.1:$port" \
    --nproc-per-node=2 --certs=certs/node --program="$PROGRAM" \
    >"node$1.txt" 2>"err$1.txt"
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
