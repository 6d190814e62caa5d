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
# An import of PyTorch takes seconds.
"$python" - <<'PYTHON' || skip "no PyTorch for $python: set TROUPE_PYTHON to a Python that has it"
import importlib.util as u
import sys
sys.exit(not all(map(u.find_spec, ("numpy", "safetensors", "torch"))))
PYTHON

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

# A wrong op is found, and the command finds it again: the same draw, alone.
compare --seed=1 --draws=15 --device=reference --show --plant=Exp &&
  die "a wrong Exp is not found"
grep -q '^ *v[0-9]* .* Exp .*: element .* 1.0e-06 away, limit 1.0e-09$' out.txt ||
  die "it shows: $(cat out.txt err.txt)"
command=$(sed -n 's/^ *to repeat it: python3 //p' out.txt | head -n 1)
seed=$(sed -n 's/^draw \([0-9]*\): .*/\1/p' out.txt | head -n 1)
sed -n "/^draw $seed:/,/to repeat it/p; /^expression $seed\$/,/^backward/p" out.txt >first.txt
# shellcheck disable=SC2086
"$python" $command --show --program="$PROGRAM" >out.txt && die "no: $command"
sed -n "/^draw $seed:/,/to repeat it/p; /^expression $seed\$/,/^backward/p" out.txt |
  diff first.txt - || die "$command differs"
(($(wc -l <first.txt) > 20)) || die "no expression: $(cat first.txt)"

compare --seed=1 --draws=15 --device=reference --plant=Softmax:gradient &&
  die "a wrong gradient of Softmax is not found"
grep '^    v' out.txt && die "values are right, and differ"
grep -q '^ *x[0-9]*.grad: element .* away, limit 1.0e-09$' out.txt ||
  die "it shows: $(cat out.txt err.txt)"

compare --plant=Erf && die "there is no Erf"
grep -q -- '--plant=Erf: there is no such op; there are + -' err.txt ||
  die "it says: $(cat err.txt)"
