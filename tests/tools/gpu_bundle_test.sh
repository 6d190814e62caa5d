#!/bin/bash
# make_gpu_bundle.py on small programs: what is in the folder, how it unpacks
# itself elsewhere, where it finds NVIDIA's libraries, and what is refused.
set -euo pipefail
die() {
  echo "FAILED: $*" >&2
  exit 1
}
readonly BUILT=$TEST_TMPDIR/built OUT=$TEST_TMPDIR/out
readonly RPATH='-Wl,-rpath,$ORIGIN/../lib'
mkdir -p "$BUILT/tools" "$BUILT/tests/nn/a_gpu_test.runfiles" "$OUT" \
  "$TEST_TMPDIR/toolkit/lib64"

# A library of NVIDIA's, as the toolkit has it, and two programs that ask for it.
echo 'int version(void) { return 9; }' >"$TEST_TMPDIR/cudnn.c"
gcc -shared -fPIC -Wl,-soname,libcudnn.so.9 "$TEST_TMPDIR/cudnn.c" \
  -o "$TEST_TMPDIR/toolkit/lib64/libcudnn.so.9"
cat >"$TEST_TMPDIR/program.c" <<'C'
#include <stdio.h>
#include <zlib.h>
#include <openssl/crypto.h>
int version(void);
int main(void) {
  printf("cuDNN %d, zlib %s, OpenSSL %lx\n", version(), zlibVersion(),
         OpenSSL_version_num());
  return 0;
}
C
program() {
  gcc "$TEST_TMPDIR/program.c" -o "$1" "${@:2}" \
    "$TEST_TMPDIR/toolkit/lib64/libcudnn.so.9" -lcrypto -lz
}
program "$BUILT/tools/trainer" "$RPATH"
program "$BUILT/tests/nn/a_gpu_test" "$RPATH"
echo golden >"$TEST_TMPDIR/golden.txt"
cat >"$BUILT/tests/nn/a_gpu_test.runfiles/MANIFEST" <<LINES
troupe/tests/golden/golden.txt $TEST_TMPDIR/golden.txt
troupe/tests/nn/a_gpu_test $BUILT/tests/nn/a_gpu_test
other/golden.txt $TEST_TMPDIR/golden.txt
LINES

make_bundle() {
  python3 tools/lib/make_gpu_bundle.py --tree=. --built="$BUILT" --out="$OUT" \
    --programs=//tools:trainer --tests="${1:-//tests/nn:a_gpu_test}" "${@:2}"
}
make_bundle //tests/nn:a_gpu_test --archive >"$TEST_TMPDIR/said.txt"
grep -q "troupe-gpu-$(<VERSION): [0-9.]* MiB" "$TEST_TMPDIR/said.txt" ||
  die "it says: $(cat "$TEST_TMPDIR/said.txt")"
make_bundle >"$TEST_TMPDIR/said.txt"
readonly ARCHIVE=$OUT/troupe-gpu-$(<VERSION).tar.gz
[[ -s $ARCHIVE ]] || die "no archive"
grep -q '/tests/' < <(tar -tzf "$ARCHIVE") && die "what is packed is there twice"

# Elsewhere it unpacks itself, and brings all but NVIDIA's and the system's.
mv "$OUT/troupe-gpu-$(<VERSION)" "$TEST_TMPDIR/else where"
cp -r "$TEST_TMPDIR/else where" "$TEST_TMPDIR/without xz"
cd "$TEST_TMPDIR/else where"
[[ ! -e bin ]] || die "bin is there before it is unpacked"
without_cuda() {
  env -i PATH=/usr/bin:/bin TROUPE_PYTHON=/nonexistent "$@"
}
with_toolkit() {
  without_cuda CUDA_HOME="$TEST_TMPDIR/toolkit" "$@"
}
with_toolkit ./with_cuda bin/trainer >out.txt || die "bin/trainer"
grep -q '^cuDNN 9, zlib' out.txt || die "it says: $(cat out.txt)"
with_toolkit ./with_cuda tests/a_gpu_test >out.txt || die "tests/a_gpu_test"
with_toolkit ./with_cuda --where >out.txt
grep -qx "libcudnn.so.9: $TEST_TMPDIR/toolkit/lib64" out.txt ||
  die "where: $(cat out.txt)"
[[ -e lib/libcrypto.so.3 ]] || die "no libcrypto.so.3"
[[ ! -e lib/libz.so.1 && ! -e lib/libc.so.6 ]] || die "the system's are there"
[[ ! -e lib/libcudnn.so.9 ]] || die "cuDNN is there"
[[ $(cat data/tests/golden/golden.txt) == golden ]] || die "no data"
[[ ! -e data/tests/nn && ! -e data/golden.txt ]] || die "too much data"
[[ -x gpu_check && -e lib/gpu_check/session.py && -e README.md ]] ||
  die "no scripts"
grep -q 'tools/gpu_bundle' README.md || die "another README"
compgen -G '.unpacking*' >/dev/null && die "what was being unpacked is left"

# Also where there is no xz.
mkdir "$TEST_TMPDIR/path"
ln -s /usr/bin/* "$TEST_TMPDIR/path"
rm -f "$TEST_TMPDIR/path/xz"
env -i PATH="$TEST_TMPDIR/path" "$TEST_TMPDIR/without xz/with_cuda" --unpack
diff -r tests "$TEST_TMPDIR/without xz/tests"
diff -r lib "$TEST_TMPDIR/without xz/lib"

# A Python's packages are found; where nobody has cuDNN, it says so.
mkdir -p site/nvidia/cudnn/lib
cp "$TEST_TMPDIR/toolkit/lib64/libcudnn.so.9" site/nvidia/cudnn/lib
if [[ ! -e /usr/local/cuda/lib64/libcudnn.so.9 ]] &&
  ! /sbin/ldconfig -p | grep -q libcudnn.so.9; then
  env -i PATH=/usr/bin:/bin PYTHONPATH="$PWD/site" ./with_cuda --where >out.txt
  grep -qx "libcudnn.so.9: $PWD/site/nvidia/cudnn/lib" out.txt ||
    die "where: $(cat out.txt)"
  without_cuda ./with_cuda bin/trainer 2>err.txt && die "no cuDNN, no word"
fi
# Beside a toolkit that lacks it, too.
echo libcufoo.so.1 >>lib/nvidia.txt
with_toolkit ./with_cuda bin/trainer 2>err.txt && die "no libcufoo, no word"
grep -q 'nowhere is libcufoo.so.1; set CUDA_HOME' err.txt ||
  die "it says: $(cat err.txt)"

# PyTorch's side sees none of these libraries.
# shellcheck disable=SC2016
peer=$(env -i PATH=/usr/bin:/bin TROUPE_PYTHON=/bin/bash LD_LIBRARY_PATH=/ab \
  TROUPE_OUTER_LIBRARY_PATH=/c ./peer_python -c 'echo "$LD_LIBRARY_PATH"')
[[ $peer == /c ]] || die "the peer's path is $peer"

# Refused: programs that do not look beside them, and folders too large.
cd "$TEST_SRCDIR/troupe"
program "$BUILT/tests/nn/b_gpu_test"
make_bundle //tests/nn:b_gpu_test 2>"$TEST_TMPDIR/err.txt" && die "no RUNPATH"
grep -q 'does not look for libraries in ../lib' "$TEST_TMPDIR/err.txt" ||
  die "it says: $(cat "$TEST_TMPDIR/err.txt")"
head -c 63000000 /dev/urandom >"$TEST_TMPDIR/golden.txt"
make_bundle 2>"$TEST_TMPDIR/err.txt" && die "60 MiB, and no word"
grep -q 'more than the 60 that may travel' "$TEST_TMPDIR/err.txt" ||
  die "it says: $(cat "$TEST_TMPDIR/err.txt")"
