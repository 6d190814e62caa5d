#!/bin/bash
# Thirty random trainings are alike in the trainer and in PyTorch, and a wrong
# option of one side shows. $TROUPE_PYTHON (else python3) must have PyTorch.
set -euo pipefail
die() {
  echo "FAILED: $*" >&2
  exit 1
}
parity() {
  tools/parity --trainer="${trainer:-tools/trainer}" "$@" >out.txt 2>err.txt
}
. tests/tools/skip_lib.sh
"${TROUPE_PYTHON:-python3}" -c 'import numpy, safetensors, torch' 2>/dev/null ||
  skip "no PyTorch for ${TROUPE_PYTHON:-python3}: set TROUPE_PYTHON to a Python that has it"

parity --seed=1 --draws=30 --jobs=2 || die "$(cat out.txt err.txt)"
grep -q '^30 draws .* [23][0-9] alike' out.txt || die "$(cat out.txt)"
grep '^no draw has' out.txt && die "the draws lack something"

# Gradients of four samples of this draw cancel out, but for a rounding, along which
# Adam takes a step.
parity --seed=4001489 || die "$(cat out.txt err.txt)"

# The first stage of this draw has no parameters, and its hook has two rounds.
parity --seed=6003659 || die "$(cat out.txt err.txt)"
grep -q '^1 draws .* 1 alike' out.txt || die "$(cat out.txt)"

# The limits of each precision find a wrong option, and the command that repeats a
# draw repeats it.
found() {
  local precision=$1 plant=$2 seed=$3
  parity --seed="$seed" --precision="$precision" --plant="$plant" &&
    die "$plant is not found in $precision"
  grep -q "^draw $seed: different: $precision on " out.txt ||
    die "$precision: $(cat out.txt err.txt)"
  grep -q '^ *parameter .* away, limit ' out.txt || die "$(cat out.txt)"
  grep -qx " *to repeat it: tools/parity --seed=$seed --precision=$precision" \
    out.txt || die "no command: $(cat out.txt)"
}
found f64 optimizer.lr=1.000001 3
found f64 train.seed=2 5
found f32 optimizer.lr=1.01 4
found f32 model.attention_dropout=1.1 29
found bf16 optimizer.lr=8 2
found f16 optimizer.lr=3 2

# So does a decision that does not follow from the rules.
parity --seed=9 --precision=f16 --plant=train.loss_scale_init=0.5 &&
  die "another loss scale is not found"
grep -q '^ *loss scales: .*, not ' out.txt || die "$(cat out.txt)"

# A draw is the same one after others.
parity --seed=5 --keep=alone || die "$(cat out.txt err.txt)"
parity --seed=4 --draws=2 --keep=behind || die "$(cat out.txt err.txt)"
for file in case.json start.safetensors; do
  cmp alone/draw-5/$file behind/draw-5/$file ||
    die "draw 5 is another behind draw 4: $file"
done

# An option that a later trainer has is reported.
cat >later_trainer <<SCRIPT
#!/bin/bash
"$PWD/tools/trainer" "\$@" 2> >(sed 's/one of "sgd"/one of "lion", "sgd"/' >&2) |
  sed 's/^| .dampening. .*/&\n| \`cautious\` | true or false |/'
exit "\${PIPESTATUS[0]}"
SCRIPT
chmod +x later_trainer
trainer=./later_trainer parity --seed=3 || die "$(cat out.txt err.txt)"
grep '^no draw has' out.txt >missing.txt
diff missing.txt - <<'LINES' || die "it reports: $(cat missing.txt)"
no draw has optimizer.cautious
no draw has optimizer.kind = "lion"
LINES

# A trainer that takes too long, one that fails, and one that is not there.
parity --seed=3 --deadline=0.001 && die "a trainer that does not end passes"
grep -q '^ *the trainer does not end in 0.001 s; .* raise --deadline' out.txt ||
  die "it says: $(cat out.txt err.txt)"
trainer=/bin/false
parity --seed=3 && die "a trainer that fails passes"
grep -q '^draw 3: failed: .*' out.txt || die "it says: $(cat out.txt err.txt)"
trainer=no/such/program
code=0
parity --seed=3 || code=$?
((code == 2)) || die "exit code $code without a trainer"
grep -q 'no program no/such/program; build it' err.txt || die "$(cat err.txt)"
