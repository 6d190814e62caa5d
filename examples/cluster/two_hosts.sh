#!/bin/sh
# Trains on two hosts that ssh reaches and that have the trainer and this folder:
#
#   examples/cluster/two_hosts.sh n1 n2
#
# Both hosts print to this terminal; Ctrl-C stops both.
set -eu
first=$1
second=$2
config=examples/glyphs/glyphs.toml

if [ ! -e certs/authority.pem ]; then
  trainer certs --dir=certs --hosts="$first,$second"
  for host in "$first" "$second"; do
    scp -pr "certs/$host" "$host:troupe_certs"
  done
fi

# -tt allocates a terminal on the host, so that Ctrl-C or a lost connection ends
# the job.
on() {
  ssh -tt "$1" trainer launch --nproc-per-node=1 --nnodes=2 --node-rank="$2" \
    --master="$first:29400" --certs=troupe_certs -- train --config="$config"
}

on "$second" 1 &
on "$first" 0
wait
