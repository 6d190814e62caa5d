# For tests of the real program: . tests/tools/trainer_lib.sh
#
#   fails_with 2 'trainer: unknown command foo; ...' foo
#   quietly train --config=tiny.toml
#   start train --config=tiny.toml; read_until 'step *'; ends_with 0
#   same_bytes a/model.safetensors b/model.safetensors
#
# Leaves the test in an empty folder that holds tiny.toml: a job of 20 steps
# that takes milliseconds.

readonly TRAINER=${TRAINER:-$PWD/tools/trainer}
cd "$(mktemp -d "$TEST_TMPDIR/XXXXXX")"

cat >tiny.toml <<'TOML'
[model]
kind = "mlp"
widths = [16]

[data]
kind = "synthetic"
train_count = 256
test_count = 32

[train]
steps = 20
global_batch_size = 16

[optimizer]
lr = 0.05
momentum = 0.9

[checkpoint]
dir = "saved"
TOML

# text_job FOLDER STEPS: writes text.toml, a job that learns a line of text by
# heart and saves to FOLDER, and that text, input.txt.
text_job() {
  printf 'To be, or not to be.\n%.0s' {1..40} >input.txt
  cat >text.toml <<TOML
[model]
kind = "gpt_nano"

[data]
kind = "text"
path = "input.txt"
tokenizer = "chars"
context = 16

[train]
steps = $2
global_batch_size = 8

[optimizer]
kind = "adamw"
lr = 0.003

[checkpoint]
dir = "$1"
TOML
}

die() {
  echo "FAILED: $*" >&2
  exit 1
}

# Expects the program to end with code $1 and to write exactly one line that
# matches $2, a pattern of bash, to its error output.
fails_with() {
  local want_code=$1 want=$2 code=0
  shift 2
  "$TRAINER" "$@" >out.txt 2>err.txt || code=$?
  ((code == want_code)) || die "exit code $code, not $want_code: $*"
  (($(wc -l <err.txt) == 1)) || die "not one line: $(cat err.txt)"
  # shellcheck disable=SC2053
  [[ $(cat err.txt) == $want ]] || die "it says: $(cat err.txt)"
}

# Expects the program to succeed without error output; its output is in out.txt.
quietly() {
  "$TRAINER" "$@" >out.txt 2>err.txt || die "$* failed: $(cat err.txt)"
  [[ ! -s err.txt ]] || die "$* says: $(cat err.txt)"
}

# Reads the program's output, to out.txt, until a line matches $1.
read_until() {
  local line
  while IFS= read -r line <&"$output"; do
    echo "$line" >>out.txt
    # shellcheck disable=SC2053
    [[ $line != $1 ]] || return 0
  done
  die "no line like $1 in: $(cat out.txt err.txt)"
}

# start OPTIONS...: starts the program in the background; its id is in pid.
start() {
  : >out.txt
  rm -f output.fifo
  mkfifo output.fifo
  "$TRAINER" "$@" >output.fifo 2>err.txt &
  pid=$!
  exec {output}<output.fifo
}

# Waits for the started program, whose output it reads on (a full pipe would
# block the program), and expects exit code $1.
ends_with() {
  local code=0
  cat <&"$output" >>out.txt &
  wait "$pid" || code=$?
  wait $!
  ((code == $1)) || die "exit code $code, not $1: $(cat out.txt err.txt)"
}

same_bytes() {
  cmp "$1" "$2" || die "$1 and $2 differ"
}

# Prints the names in a folder on one line.
names_in() {
  (cd "$1" && echo *)
}
