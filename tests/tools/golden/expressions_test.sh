#!/bin/bash
# Random expressions of ops are those of PyTorch, a wrong op shows, and the command
# that repeats a draw repeats it. $TROUPE_PYTHON (else python3) must have PyTorch.
set -euo pipefail
readonly PROGRAM=$PWD/tools/golden/expressions
die() {
  echo "FAILED: $*" >&2
  exit 1
}

"$PROGRAM" --help | grep -q 'tools/golden/expressions.py' || die "no help"
"$PROGRAM" --ops | grep -qx LogSoftmax || die "no ops"
code=0
"$PROGRAM" --device=cpu no/program no/inputs out 2>err.txt || code=$?
((code == 2)) || die "exit code $code without a program"
grep -q '^expressions: .*no/program' err.txt || die "it says: $(cat err.txt)"

. tests/tools/skip_lib.sh
python=${TROUPE_PYTHON:-python3}
"$python" -c 'import numpy, safetensors, torch' 2>/dev/null ||
  skip "no PyTorch for $python: set TROUPE_PYTHON to a Python that has it"

compare() {
  "$python" "${scripts:-tools/golden}/expressions.py" --program="$PROGRAM" "$@" \
    >out.txt 2>err.txt
}

# 200 draws have all ops of the headers, but for one that a later header has.
mkdir -p later/tools later/nn
cp -RL tools/golden later/tools/
cp -RL nn/autograd later/nn/
chmod -R u+w later
echo 'Var Erf(const Var& x);' >>later/nn/autograd/var_math.h
scripts=later/tools/golden compare --seed=1 --draws=200 ||
  die "$(cat out.txt err.txt)"
grep -q '^200 draws .* 200 alike on reference' out.txt || die "$(cat out.txt)"
grep -q ' 1[0-9][0-9] alike on cpu\| 200 alike on cpu' out.txt ||
  die "$(cat out.txt)"
[[ $(grep '^no draw has' out.txt) == "no draw has Erf" ]] ||
  die "the draws lack: $(cat out.txt)"

# A draw is the same one after others.
compare --seed=5 --show || die "$(cat out.txt err.txt)"
grep '=\|^backward' out.txt >alone.txt
compare --seed=4 --draws=2 --show || die "$(cat out.txt err.txt)"
sed -n '/^expression 5$/,$p' out.txt | grep '=\|^backward' | diff - alone.txt ||
  die "draw 5 is another behind draw 4"

# A wrong op and a wrong gradient are found, and the command finds them again.
found() {
  local plant=$1 command
  compare --seed=1 --draws=15 --device=reference --plant="$plant" &&
    die "$plant is not found"
  grep -q '^draw [0-9]*: different on reference$' out.txt ||
    die "$plant: $(cat out.txt err.txt)"
  grep -q '^ *[vx][0-9.a-z]* .*: element .* away, limit 1.0e-09$\|^ *x.*: element' \
    out.txt || die "$plant: $(cat out.txt)"
  command=$(sed -n 's/^ *to repeat it: python3 //p' out.txt | head -n 1)
  sed -n '1,/to repeat it/p' out.txt >first.txt
  # shellcheck disable=SC2086
  "$python" $command --program="$PROGRAM" >out.txt && die "no: $command"
  head -n "$(wc -l <first.txt)" out.txt | diff first.txt - ||
    die "$command differs"
}
found Exp
found Softmax:gradient

compare --plant=Erf && die "there is no Erf"
grep -q -- '--plant=Erf: there is no such op; there are + -' err.txt ||
  die "it says: $(cat err.txt)"
"$python" tools/golden/expressions.py --program=no/program 2>err.txt &&
  die "there is no such program"
grep -q 'no program no/program; build it' err.txt || die "it says: $(cat err.txt)"
