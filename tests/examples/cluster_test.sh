#!/bin/bash
# The scripts can be read, and name options and variables that there are. What
# they start needs a cluster.
set -euo pipefail

trainer=tools/trainer
examples=examples/cluster

bash -n "$examples/slurm.sh"
sh -n "$examples/two_hosts.sh"

help=$("$trainer" help train; "$trainer" help launch; "$trainer" help certs)
# Of the trainer's commands, continued lines included.
options=$(sed -e ':a' -e '/\\$/{N;s/\\\n//;ba' -e '}' \
  "$examples"/*.sh "$examples"/*.yaml |
  grep -E 'trainer[", ]+(train|launch|certs)' | sed 's/.*trainer//' |
  grep -o -- '--[a-z][a-z-]*' | sort -u)
for option in $options; do
  if ! grep -q -- "$option\b" <<<"$help"; then
    echo "$option: no option of the trainer"
    exit 1
  fi
done
[[ $(wc -w <<<"$options") -ge 8 ]] || { echo "found only: $options"; exit 1; }

# The environment of a pod.
variables=$(grep -A1 'name: TROUPE_' "$examples/kubernetes.yaml" |
  sed -n 's/.*name: //p; s/.*value: //p' | tr -d '"' | paste -d= - -)
out=$TEST_TMPDIR/out
if env $variables JOB_COMPLETION_INDEX=2 "$trainer" train \
  --set train.steps=1 --set data.kind=glyphs >"$out" 2>&1; then
  echo "a pod too many was not refused"
  exit 1
fi
grep -q 'JOB_COMPLETION_INDEX=2 must be below TROUPE_PROCESSES=2' "$out" ||
  { cat "$out"; exit 1; }
