#!/bin/bash
# TensorBoard's own reader takes the event files of a run that was resumed, and
# of one that lost steps to a crash: each step shows once. $TROUPE_PYTHON (else
# python3) must have the package `tensorboard`.
set -euo pipefail
python=${TROUPE_PYTHON:-python3}
reader=$PWD/tests/tools/metrics/read_events.py
. tests/tools/skip_lib.sh
. tests/tools/trainer_lib.sh
"$python" -c 'import tensorboard' 2>/dev/null ||
  skip "no tensorboard for $python: set TROUPE_PYTHON to a Python that has it"

# run STEPS OPTIONS...
run() {
  local steps=$1
  shift
  quietly train --config=tiny.toml --set train.steps="$steps" \
    --set log.tensorboard=events --set log.every=5 --set train.eval_every=10 \
    --set checkpoint.every=10 "$@"
}

# The first run goes to step 20; then its last checkpoint is lost, as if it had
# crashed before that, and steps 11 to 20 are trained again.
run 20
rm -r saved/step-00000020
# The name of a file has the second of its start: the second run's comes later.
first=$(echo events/events.out.tfevents.*)
mv "$first" "${first/tfevents.*/tfevents.0000000001.first.1}"
run 30 --resume

steps=5,10,15,20,25,30
"$python" "$reader" events eval/accuracy:10,20,30 eval/loss:10,20,30 \
  train/accuracy:$steps train/loss:$steps train/lr:$steps \
  train/samples_per_second:$steps || die 'the events are wrong'
