#!/bin/bash
# A program with a main of its own under `trainer launch`: the losses of one
# process, to the last bit, and what its mistakes end with.
set -euo pipefail
PROGRAM=$PWD/examples/any_launcher/any_launcher
. tests/tools/trainer_lib.sh

losses() { grep -E '^(step [0-9]+: loss|test loss) ' "$1"; }

"$PROGRAM" --ranks=4 >alone.txt 2>err.txt || die "alone: $(cat err.txt)"
(($(losses alone.txt | wc -l) == 5)) || die "alone: $(cat alone.txt)"
"$TRAINER" launch --nproc-per-node=4 --program="$PROGRAM" >four.txt \
  2>err.txt || die "launched: $(cat err.txt)"
grep -qx '\[2\] launched by trainer launch: process 2 of 4' err.txt ||
  die "it says: $(cat err.txt)"
[[ $(losses four.txt) == "$(losses alone.txt)" ]] ||
  die "$(diff four.txt alone.txt)"
# Four ranks in three processes, and arguments of the program's.
"$TRAINER" launch --nproc-per-node=3 --program="$PROGRAM" -- --ranks=4 \
  >three.txt 2>err.txt || die "launched: $(cat err.txt)"
[[ $(losses three.txt) == "$(losses alone.txt)" ]] ||
  die "$(diff three.txt alone.txt)"

# Two nodes, with a `trainer launch` on each.
quietly certs --dir=certs
port=$(python3 -c 'import socket
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    print(free.getsockname()[1])')
node() {
  "$TRAINER" launch --nnodes=2 --node-rank="$1" --master="127.0.0.1:$port" \
    --nproc-per-node=1 --certs=certs/node --program="$PROGRAM" -- --ranks=4 \
    >"node$1.txt" 2>"err$1.txt"
}
node 1 &
node 0 || die "node 0: $(cat err0.txt)"
wait $! || die "node 1: $(cat err1.txt)"
[[ $(losses node0.txt) == "$(losses alone.txt)" ]] ||
  die "$(diff node0.txt alone.txt)"

# Mistakes.
fails_with 2 'trainer: --program=./mine: No such file or directory; write the *' \
  launch --nproc-per-node=2 --program=./mine
echo 'print()' >mine.py
fails_with 2 'trainer: --program=./mine.py is not executable; allow it by *' \
  launch --nproc-per-node=2 --program=./mine.py
fails_with 2 'trainer: unknown option --ranks; * those of a program after "--"' \
  launch --nproc-per-node=2 --program="$PROGRAM" --ranks=3

# A process ends before it joins: it is named with its code, and ends the other,
# which waits for it.
cat >quits <<SH
#!/bin/sh
if [ "\$RANK" = 1 ]; then echo 'no device here' >&2; exit 7; fi
exec "$PROGRAM"
SH
chmod +x quits
code=0
"$TRAINER" launch --nproc-per-node=2 --program=./quits >out.txt 2>err.txt ||
  code=$?
((code == 7)) || die "code $code: $(cat err.txt)"
grep -qx 'trainer: process 1 (pid [0-9]*) failed first, with code 7: no device here' \
  err.txt || die "it says: $(cat err.txt)"

# Its ranks and processes do not fit.
code=0
"$TRAINER" launch --nproc-per-node=2 --program="$PROGRAM" -- --ranks=1 \
  >out.txt 2>err.txt || code=$?
((code == 1)) || die "code $code: $(cat err.txt)"
grep -q 'the job has 1 ranks, fewer than the 2 processes; start fewer, or give' \
  err.txt || die "it says: $(cat err.txt)"
