#!/bin/bash
# A signal finishes the step, saves and exits with 3; a second Ctrl-C exits at
# once. The test depends on no times: each signal follows a line that the
# program printed, or is sent until it takes effect.
set -euo pipefail
. tests/tools/trainer_lib.sh

for signal in INT TERM USR1 USR2 XCPU HUP; do
  start train --config=tiny.toml --set checkpoint.dir="$signal" \
    --set train.steps=1000000000
  read_until 'step *'
  kill "-$signal" "$pid"
  again=$([[ $signal == INT ]] && echo ' again' || true)
  read_until "stopping after this step; Ctrl-C$again exits at once"
  read_until 'stopped: *'
  read_until "to go on: $TRAINER train --config=tiny.toml --set checkpoint.dir=$signal --set train.steps=1000000000 --resume"
  ends_with 3
  [[ ! -s err.txt ]] || die "$(cat err.txt)"

  # The run resumes to the same bits as a run that was never stopped.
  step=$((10#$(names_in "$signal" | sed 's/step-//')))
  steps=$((step + 10))
  quietly train --config=tiny.toml --set checkpoint.dir="$signal" --resume \
    --set train.steps="$steps"
  quietly train --config=tiny.toml --set checkpoint.dir="whole_$signal" \
    --set train.steps="$steps"
  folder=$(printf 'step-%08d' "$steps")
  same_bytes "$signal/$folder/model.safetensors" \
    "whole_$signal/$folder/model.safetensors"
done

# Signals that come twice, as timeout and shells send them, are one.
start train --config=tiny.toml --set checkpoint.dir=twice \
  --set train.steps=1000000000
read_until 'step *'
kill -TERM "$pid"
kill -TERM "$pid"
kill -HUP "$pid"
read_until 'checkpoint: twice/step-*'
ends_with 3

# So is a Ctrl-C that comes twice at once: `timeout` signals its child and the
# child's group.
start train --config=tiny.toml --set checkpoint.dir=both \
  --set train.steps=1000000000
read_until 'step *'
kill -INT "$pid"
kill -INT "$pid"
read_until 'checkpoint: both/step-*'
ends_with 3

# The reader of the output ends.
code=0
"$TRAINER" train --config=tiny.toml --set checkpoint.dir=unread \
  --set train.steps=1000000000 2>err.txt | head -n 2 >out.txt ||
  code=${PIPESTATUS[0]}
((code == 3)) || die "exit code $code, not 3: $(cat err.txt)"
want='trainer: stopped before the end: nobody reads the output any more'
[[ $(cat err.txt) == "$want" ]] || die "it says: $(cat err.txt)"
[[ $(names_in unread) == step-* ]] || die "saved: $(names_in unread)"

# The output has a reader that does not read, and the pipe is full.
never_reads() {
  dd if=/dev/zero of=output.fifo oflag=nonblock conv=notrunc bs=4096 \
    2>/dev/null && die "the pipe is not full"
  kill "-$1" "$pid"
  timeout 50 tail --pid="$pid" -f /dev/null || die "it waits for a reader"
  code=0
  wait "$pid" || code=$?
  ((code == 3)) || die "exit code $code, not 3: $(cat err.txt)"
  exec {output}<&-
}
for signal in INT TERM; do
  start train --config=tiny.toml --set checkpoint.dir="full_$signal" \
    --set train.steps=1000000000 --set log.every=1
  read_until 'step *'
  never_reads "$signal"
  [[ $(names_in "full_$signal") == step-* ]] ||
    die "saved: $(names_in "full_$signal")"
done

# So it is where both processes of a launcher write.
start launch --nproc-per-node=2 -- train --config=tiny.toml \
  --set checkpoint.dir=full_launch --set train.steps=1000000000 \
  --set log.every=1 --set mesh.dp=2
read_until 'step *'
never_reads INT
[[ $(names_in full_launch) == step-* ]] ||
  die "saved: $(names_in full_launch)"

# Whether the program handles SIGINT (bit 1 of the mask) already.
handles_signals() {
  [[ $(cat "/proc/$pid/comm") == trainer ]] &&
    ((0x$(awk '/^SigCgt/ { print $2 }' "/proc/$pid/status") & 2))
}

# Before the first step: the program waits for a reader of its log when the
# signal arrives. Training has not begun, and existing files stay.
quietly train --config=tiny.toml
cp -r saved before
mkfifo log.fifo
start train --config=tiny.toml --set checkpoint.replace=true \
  --set log.file=log.fifo --trace=trace.json
until handles_signals; do :; done
kill -INT "$pid"
read_until 'stopping after this step; *'
cat log.fifo >log.txt &
read_until 'stopped before the first step'
ends_with 3
diff -r --exclude=.lock before saved || die "the checkpoints of the earlier run were touched"

# A step of many seconds.
start train --config=tiny.toml --set train.device=reference:0 \
  --set model.widths=2048,2048 --set data.train_count=4096 \
  --set train.global_batch_size=4096 --set checkpoint.dir=slow
read_until 'training *'
kill -INT "$pid"
read_until 'stopping after this step; *'
while kill -INT "$pid" 2>/dev/null; do :; done
ends_with 130
