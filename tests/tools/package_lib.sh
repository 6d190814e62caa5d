# Shared by the tests of tools/package; sourced at the root of the runfiles.

die() {
  echo "FAILED: $*" >&2
  exit 1
}

# Shared libraries in a bare Debian 12 (debootstrap --variant=minbase).
readonly OF_DEBIAN='linux-vdso|ld-linux-x86-64|libc|libdl|libgcc_s|libm|libpthread|librt|libstdc\+\+|liblzma|libz|libzstd'
readonly version=$(<VERSION)

# make_package FOLDER [--deb]: prints the path of what it makes there.
make_package() {
  python3 tools/lib/make_package.py --tree=. --built=. --out="$TEST_TMPDIR/$1" \
    "${@:2}"
}

# Fails if the dynamic linker would load a library that is neither below the
# folder nor in every Debian: only_libraries_of FOLDER PROGRAM
only_libraries_of() {
  local strange
  strange=$(env -i PATH=/usr/bin:/bin ldd "$2" | grep -vF " => $1/" |
    grep -vE "^\s*(/lib64/)?($OF_DEBIAN)\.so" || true)
  [[ -z $strange ]] || die "$2 needs what a bare Debian lacks: $strange"
}

# Fails if a program of Troupe::core needs a library of the actors or of the
# trainer.
is_core() {
  local strange
  [[ $(ldd "$1") == *libdnnl.so* ]] || die "$1 links nothing of Troupe"
  strange=$(ldd "$1" |
    grep -E 'lib(caf|ssl|crypto|boost|prometheus|civetweb|hwloc)' || true)
  [[ -z $strange ]] || die "$1 needs more than Troupe::core: $strange"
}

has_cmake() {
  command -v cmake >/dev/null ||
    { echo "not tried: find_package(), since there is no cmake here" && false; }
}

# Builds examples/01_train_by_hand against Troupe::core in the folder core_build,
# and runs it: cmake_core PREFIX SOURCE
cmake_core() {
  mkdir -p core
  cat >core/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.16)
project(core CXX)
find_package(Troupe 0.1...<0.2 CONFIG REQUIRED COMPONENTS core)
if(TARGET Troupe::troupe)
  message(FATAL_ERROR "COMPONENTS core has declared Troupe::troupe")
endif()
add_executable(train_by_hand ${SOURCE})
target_link_libraries(train_by_hand PRIVATE Troupe::core)
# Links all that the target names, which else only a program that uses it has.
target_link_options(train_by_hand PRIVATE LINKER:--no-as-needed)
CMAKE
  cmake -S core -B core_build -DSOURCE="$PWD/$2" -DCMAKE_PREFIX_PATH="$1" \
    >core.log 2>&1 || die "$(<core.log)"
  cmake --build core_build >core.log 2>&1 || die "$(<core.log)"
  core_build/train_by_hand >/dev/null || die "the program of Troupe::core"
  is_core core_build/train_by_hand
}
