# For tests that compare runs of an example: . tests/examples/losses_lib.sh
#
#   common=(--config="$config" --set train.steps=3)
#   train_as one --ranks=1; in_two_processes two --ranks=2
#   same_losses one two; near_losses 1e-4 one two
#
# Leaves the test in an empty folder, as tests/tools/trainer_lib.sh does. A run
# called NAME leaves NAME.txt, a line for each step and evaluation with its loss
# in full, and its checkpoints in NAME/.

. tests/tools/trainer_lib.sh

# A number of lines of a log; all steps are in it.
_losses_of() {
  sed -nE 's/.*"kind":"([a-z]*)","step":([0-9]*),.*"loss":([^,]*),.*/\1 \2 \3/p' \
    "$1.jsonl" >"$1.txt"
  [[ -s $1.txt ]] || die "$1 has no losses: $(cat out.txt)"
}

# train_as NAME OPTIONS...: one process.
train_as() {
  local name=$1
  shift
  quietly train "${common[@]}" --set log.every=1 \
    --set log.file="$name.jsonl" --set checkpoint.dir="$name" "$@"
  _losses_of "$name"
}

# in_two_processes NAME OPTIONS...: each has half of the ranks.
in_two_processes() {
  local name=$1
  shift
  quietly launch --nproc-per-node=2 -- train "${common[@]}" --set log.every=1 \
    --set log.file="$name.jsonl" --set checkpoint.dir="$name" "$@"
  grep -q 'process 0 of 2' out.txt || die "not two processes: $(cat out.txt)"
  _losses_of "$name"
}

# same_losses ONE OTHER...: bit for bit.
same_losses() {
  local other
  for other in "${@:2}"; do
    cmp -s "$1.txt" "$other.txt" ||
      die "losses of $1 and $other differ:"$'\n'"$(paste "$1.txt" "$other.txt")"
  done
}

# Whether the losses of $2 and $3 differ by less than $1, line by line.
_are_near() {
  paste "$2.txt" "$3.txt" | awk -v most="$1" '
    $1 != $4 || $2 != $5 { exit 1 }
    { far = $3 - $6; if (!(far < most && -far < most)) exit 1 }'
}

# near_losses TOLERANCE ONE OTHER
near_losses() {
  _are_near "$@" ||
    die "losses of $2 and $3 differ by $1:"$'\n'"$(paste "$2.txt" "$3.txt")"
}

# far_losses TOLERANCE ONE OTHER: what near_losses would refuse.
far_losses() {
  ! _are_near "$@" ||
    die "losses of $2 and $3 are near:"$'\n'"$(paste "$2.txt" "$3.txt")"
}
