#!/bin/bash
# The archive of tools/package: equal bytes twice; unpacked elsewhere it trains,
# needs no library beyond its own and those of every Debian, and the C++ examples
# and their tests compile against it with g++ and pkg-config, or CMake, alone.
set -euo pipefail
. tests/tools/package_lib.sh

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
only_libraries_of "$PWD" bin/trainer
for library in lib/*.so.*; do
  LD_LIBRARY_PATH=$PWD/lib ldd "$library" >/dev/null || die "$library"
done

# The library. Its headers include nothing that only this machine has.
for name in troupe troupe-core; do
  [[ $(alone pkg-config --modversion "$name") == "$version" ]] ||
    die "pkg-config $name"
done
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
only_libraries_of "$PWD" examples/outside/train

# CMake, in a copy of the examples that is not beside the archive.
has_cmake || exit 0
readonly prefix=$PWD
cp -r examples "$TEST_TMPDIR/apart"
cd "$TEST_TMPDIR/apart"
cmake_outside() {
  cmake -S outside -B build -DCMAKE_PREFIX_PATH="$prefix" "$@" >cmake.log 2>&1
}
cmake_outside || die "$(<cmake.log)"
cmake --build build >cmake.log 2>&1 || die "$(<cmake.log)"
alone build/train | grep -q '^test accuracy 0\.[89]' || die "train of CMake"
only_libraries_of "$prefix" build/train
cmake_core "$prefix" 01_train_by_hand/train_by_hand.cc
g++ -Wl,--no-as-needed -o core_program $(find core_build -name 'train_by_hand*.o') \
  $(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --libs troupe-core)
is_core ./core_program

# Errors say what to do.
refused() {
  local words=$1
  shift
  ! cmake_outside "$@" || die "accepted: $*"
  # CMake breaks lines at spaces.
  tr -s '\n ' ' ' <cmake.log | grep -qF "$words" || die "$(<cmake.log)"
}
refused 'remove that flag, or write -std=c++17' -DCMAKE_CXX_FLAGS=-std=c++14
sed -i 's/Troupe 0.1 /Troupe 0.2 /' outside/CMakeLists.txt
refused "version: $version" -DCMAKE_CXX_FLAGS=
sed -i 's/Troupe 0.2 CONFIG REQUIRED/Troupe CONFIG REQUIRED COMPONENTS gpu/' \
  outside/CMakeLists.txt
refused 'no component gpu; write core'
sed -i 's/ COMPONENTS gpu//' outside/CMakeLists.txt
sed -i 's/libcaf_io\.so/libcaf_lost.so/' "$prefix"/lib/cmake/Troupe/*Config.cmake
refused 'libcaf_lost.so.0.17.6 is neither in'
cmake -S core -B core_build >core.log 2>&1 || die "$(<core.log)"
mv "$prefix/lib/libtroupe.a" .
refused 'lib/libtroupe.a is missing; unpack the whole archive'
