#!/bin/bash
# The archive of tools/package: equal bytes twice; unpacked elsewhere it trains,
# needs no library beyond its own and those of every Debian, and the C++ example
# and its tests compile against it with g++ and pkg-config alone.
set -euo pipefail
die() {
  echo "FAILED: $*" >&2
  exit 1
}

# Shared libraries in a bare Debian 12 (debootstrap --variant=minbase).
readonly OF_DEBIAN='linux-vdso|ld-linux-x86-64|libc|libdl|libgcc_s|libm|libpthread|librt|libstdc\+\+|libz'

make_package() {
  python3 tools/lib/make_package.py --tree=. --built=. --out="$TEST_TMPDIR/$1"
}
readonly version=$(<VERSION)
readonly archive=$(make_package one)
cmp "$archive" "$(make_package two)" || die "equal sources, other bytes"
[[ ${archive##*/} == "troupe-$version-linux-x86_64.tar.gz" ]] ||
  die "another name: $archive"
grep -q "^## \[$version\]" CHANGELOG.md || die "CHANGELOG.md has no $version"

mkdir "$TEST_TMPDIR/elsewhere"
tar -xf "$archive" -C "$TEST_TMPDIR/elsewhere" --strip-components=1
cd "$TEST_TMPDIR/elsewhere"
alone() {
  env -i PATH=/usr/bin:/bin PKG_CONFIG_PATH="$PWD/lib/pkgconfig" "$@"
}

# The program.
[[ $(alone bin/trainer --version) == "trainer $version" ]] || die "--version"
alone bin/trainer train --config=examples/glyphs/glyphs.toml \
  --set train.epochs=1 --set data.train_count=1024 --set checkpoint.dir=saved \
  >out.txt ||
  die "it does not train"
grep -q '^test accuracy: ' out.txt || die "no accuracy: $(cat out.txt)"

# What a program is linked to comes from the archive, or is in every Debian.
only_known_libraries() {
  local strange
  strange=$(alone ldd "$1" | grep -vF " => $PWD/" |
    grep -vE "^\s*(/lib64/)?($OF_DEBIAN)\.so" || true)
  [[ -z $strange ]] || die "$1 needs what a bare Debian lacks: $strange"
}
only_known_libraries bin/trainer
for library in lib/*.so.*; do
  LD_LIBRARY_PATH=$PWD/lib ldd "$library" >/dev/null || die "$library"
done

# The library. Its headers include nothing that only this machine has.
[[ $(alone pkg-config --modversion troupe) == "$version" ]] || die "pkg-config"
(cd include/troupe && find . -name '*.h' -not -path './absl/*' \
  -printf '#include "%P"\n') >all.cc
(($(wc -l <all.cc) > 80)) || die "headers are missing"
alone g++ $(alone pkg-config --cflags troupe) -M all.cc >needs.txt
strange=$(tr -s ' \\' '\n' <needs.txt |
  grep -E '^/usr/(local/)?include/[^/]*/' |
  grep -vE '^/usr/include/(c\+\+|x86_64-linux-gnu|linux|asm-generic)/' || true)
[[ -z $strange ]] || die "headers outside the archive: $strange"

alone make -s -C examples/outside train wide_and_deep_test
examples/outside/wide_and_deep_test || die "the example's tests"
alone examples/outside/train | grep -q '^test accuracy 0\.[89]' || die "train"
only_known_libraries examples/outside/train
