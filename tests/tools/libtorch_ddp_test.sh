#!/bin/bash
# examples/libtorch_ddp builds against the archive of tools/package and PyTorch's
# libraries. Its gradients, on two ranks in two processes, are those that PyTorch
# computes in one; buckets are reduced while libtorch's backward goes on.
set -euo pipefail
. tests/tools/package_lib.sh
. tests/tools/skip_lib.sh
readonly PYTHON=$PWD/tools/lib/peer_python.sh
readonly CHECKS=$PWD/tests/tools/libtorch_ddp_checks.cc
torch=$("$PYTHON" -c 'import torch; print(torch.__path__[0])' 2>/dev/null) ||
  skip "no torch: set TROUPE_PYTHON to a Python that has it"
readonly torch
[[ -e $torch/include/torch/csrc/api/include/torch/torch.h &&
  -e $torch/lib/libtorch_cpu.so ]] ||
  skip "the torch of TROUPE_PYTHON lacks libtorch: $torch/include/torch"
command -v cmake >/dev/null || skip "no cmake here"

readonly archive=$(make_package one)
mkdir "$TEST_TMPDIR/archive"
tar -xf "$archive" -C "$TEST_TMPDIR/archive" --strip-components=1
cd "$TEST_TMPDIR"
readonly EXAMPLE=$PWD/archive/examples/libtorch_ddp

mkdir checks
cat >checks/CMakeLists.txt <<CMAKE
cmake_minimum_required(VERSION 3.16)
project(checks CXX)
add_subdirectory("$EXAMPLE" example)
add_executable(checks "$CHECKS")
target_link_libraries(checks PRIVATE gradient_reducer)
CMAKE
configure() {
  cmake -S checks -B build -DCMAKE_PREFIX_PATH="$PWD/archive" "$@" >log 2>&1
}
configure -DTORCH=/nowhere && die "it is built without libtorch"
grep -q 'TORCH=/nowhere has no libtorch' log || die "it says: $(<log)"
configure -DTORCH="$torch" || die "$(<log)"
cmake --build build >log 2>&1 || die "$(<log)"

build/checks || die "the checks of GradientReducer"
readonly PROGRAM=build/example/libtorch_ddp
"$PROGRAM" --model=vgg 2>log && die "there is no vgg"
grep -q -e '--model=vgg must be mlp or resnet18' log || die "it says: $(<log)"

check() {
  "$PYTHON" "$EXAMPLE/libtorch_ddp.py" --model="$1" --check="$2"
}
for model in mlp resnet18; do
  "$PROGRAM" --model="$model" --batch=4 --steps=4 --save="$model.pt" \
    --trace="$model" || die "$model does not train"
  check "$model" "$model.pt" || die "the gradients of $model"
done

# A gradient that is wrong by a hundred-thousandth shows.
"$PYTHON" - <<'PYTHON'
import torch, torch.jit._pickle
with torch.serialization.safe_globals([torch.jit._pickle.restore_type_tag]):
    saved = dict(torch.load("mlp.pt"))
saved["grad of 2.weight"] *= 1.00001
torch.save(saved, "wrong.pt")
PYTHON
check mlp wrong.pt && die "wrong gradients pass"

# The timeline: all gradients, and a bucket that is reduced from before the end
# of the backward on.
"$PYTHON" - mlp.0.json mlp.1.json <<'PYTHON' || die "the timeline"
import json, sys
for path in sys.argv[1:]:
    events = json.load(open(path))["traceEvents"]
    time = {(e["ph"], e["name"]): e["ts"] for e in events if e["ph"] in "BEi"}
    gradients = sum(e.get("cat") == "gradient" for e in events)
    assert gradients == 8, f"{path}: {gradients} gradients"
    backward = time["B", "backward"], time["E", "backward"]
    begin = time["B", "all_reduce of bucket 0"]
    assert backward[0] < begin < backward[1], f"{path}: {backward}, {begin}"
PYTHON
