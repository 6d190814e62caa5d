#!/bin/bash
# Only one run at a time writes to a folder of checkpoints. A second one ends
# before it changes any file; a killed one leaves no lock and no temporary
# files.
set -euo pipefail
. tests/tools/trainer_lib.sh

forever=(train --config=tiny.toml --set train.steps=1000000000)
start "${forever[@]}" --set log.file=log.jsonl --set log.every=1
read_until 'step *'

# Neither the folder nor the first one's log and timeline.
held="trainer: another run writes checkpoints into saved: cannot lock"
held+=" saved/.lock: it is held by process $pid on *, since *UTC; wait for it"
held+=" to end, or stop it, or use another path"
echo timeline >trace.json
for more in --resume '--set checkpoint.replace=true'; do
  # shellcheck disable=SC2086
  fails_with 1 "$held" train --config=tiny.toml $more --trace=trace.json
done
[[ $(cat trace.json) == timeline ]] || die 'it wrote the timeline'
[[ $(names_in saved) == '*' ]] || die "left: $(names_in saved)"

# The second run may use another folder.
quietly train --config=tiny.toml --set checkpoint.dir=other

kill -KILL "$pid"
ends_with 137
mkdir "saved/step-00000007.tmp-$pid" saved/step-00000900.tmp-1
quietly train --config=tiny.toml --resume
[[ $(names_in saved) == step-00000020 ]] || die "left: $(names_in saved)"
