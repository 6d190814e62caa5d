#!/bin/bash
# trainer launch and trainer certs: what the real program says and ends with.
set -euo pipefail
. tests/tools/trainer_lib.sh

# What every process would refuse is said once.
fails_with 2 'trainer: unknown option --rank=4; run "trainer train --help" for a list' \
  launch --nproc-per-node=2 -- train --rank=4
fails_with 2 'trainer: how many processes is not said; write --nproc-per-node=2' \
  launch -- train --config=tiny.toml

# One process is a run as any other.
quietly launch --nproc-per-node=1 -- train --config=tiny.toml \
  --set checkpoint.dir=launched
quietly train --config=tiny.toml
same_bytes launched/step-*20/model.safetensors saved/step-*20/model.safetensors

# What several processes say last starts as many again, which go on.
quietly launch --nproc-per-node=2 -- train --config=tiny.toml \
  --set checkpoint.dir=two
command=$(sed -n 's/^to go on: //p' out.txt)
[[ $command == "$TRAINER launch --nproc-per-node=2 -- train "* ]] ||
  die "it says: $command"
bash -c "$command" >out.txt || die "$command failed: $(cat out.txt)"
grep -q 'launched by trainer launch: process 0 of 2' out.txt &&
  grep -q 'going on from two/step-00000020' out.txt &&
  [[ $(names_in two) == *step-00000040* ]] || die "$(cat out.txt)"

# On a terminal that cannot rewrite a line, and only there, runs print lines.
on_terminal() {
  TERM=$1 python3 -c 'import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))' \
    "$TRAINER" "${@:2}" --config=tiny.toml --set checkpoint.dir= >out.txt ||
    die "$*: $(cat out.txt)"
}
for words in train 'launch --nproc-per-node=2 -- train --set mesh.dp=2'; do
  # shellcheck disable=SC2086  # several words
  for term in dumb unknown ''; do
    on_terminal "$term" $words
    ! grep -q $'\x1b' out.txt || die "escape sequences: $(cat -v out.txt)"
    grep -q '^step 20/20 ' out.txt || die "no lines: $(cat -v out.txt)"
  done
  # shellcheck disable=SC2086  # several words
  on_terminal xterm $words
  grep -q $'\x1b' out.txt || die "no bar: $(cat -v out.txt)"
done

# Asked for by name, the bar is drawn there, too.
on_terminal dumb train --set log.progress=on
grep -q $'\x1b' out.txt || die "no bar: $(cat -v out.txt)"

quietly certs --dir=certs --hosts=n1,n2
[[ $(stat -c %a certs/n2/node.key) == 600 ]] || die "a key that others may read"
[[ ! -e certs/n2/authority.key ]] || die "a node could sign"
fails_with 1 "trainer: certs/n1 is there already, and nothing is overwritten; \
remove it, or use another --dir" certs --dir=certs --hosts=n1

# What a doctor finds depends on the machine; that the file is not there, does
# not.
fails_with 2 "trainer: doctors show each other certificates; write --listen \
--certs=certs" doctor --listen
code=0
"$TRAINER" doctor --certs=nowhere >out.txt || code=$?
((code == 1)) || die "exit code $code, not 1"
grep -q '^certificates  *problem  .*nowhere' out.txt || die "$(cat out.txt)"

# Ctrl-C reaches the run, which saves and stops; its code is the launcher's.
start launch --nproc-per-node=1 -- train --config=tiny.toml \
  --set train.steps=100000000 --set log.every=10 --set checkpoint.dir=stopped
read_until 'step *'
kill -INT "$pid"
ends_with 3
[[ $(names_in stopped) == *step-* ]] || die "nothing was saved"

# Who was killed is named.
start launch --nproc-per-node=1 -- train --config=tiny.toml \
  --set train.steps=100000000 --set log.every=10 --set checkpoint.dir=killed
read_until 'step *'
kill -KILL $(cat "/proc/$pid/task/$pid/children")
ends_with 137
grep -q 'trainer: process 0 (pid [0-9]*) was killed by SIGKILL' err.txt ||
  die "it says: $(cat err.txt)"
