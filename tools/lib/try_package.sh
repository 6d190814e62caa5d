#!/bin/bash
# Tries what tools/package makes, ./troupe-*.tar.gz and ./troupe_*.deb, in a bare
# Debian 12, and prints each command: both train where nothing else is installed,
# programs are built against both with g++, cmake and pkg-config alone and run, and
# apt leaves nothing of the package when it removes it.
#
# Changes the system on which it runs: tools/bare_root --package starts it in a
# root made for it.
set -euo pipefail
die() {
  echo "FAILED: $*" >&2
  exit 1
}
step() {
  echo "\$ $*"
  eval "$*"
}
apt() {
  echo "\$ apt-get $*"
  DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o Dpkg::Use-Pty=0 "$@" \
    >apt.log 2>&1 || die "$(tail -n 20 apt.log)"
}
lacks() {
  ! command -v "$@" || die "that is here already: this Debian is not bare"
}
learns() {
  step "$1 | tee out"
  grep -q '^test accuracy 0\.[89]' out || die "it has not learned"
}

# Builds and runs copies of the examples in a folder: builds FOLDER OPTION...,
# where the options are CMake's.
builds() {
  local examples=$1
  shift
  step rm -rf outside 01_train_by_hand build
  step cp -r "$examples"/{outside,01_train_by_hand} .
  step cmake -S outside -B build "$@"
  step cmake --build build
  learns build/train
  step "g++ \$(pkg-config --cflags troupe) outside/{train,wide_and_deep}.cc \
-o train \$(pkg-config --libs troupe)"
  learns ./train
  step "g++ \$(pkg-config --cflags troupe-core) 01_train_by_hand/*.cc \
-o by_hand \$(pkg-config --libs troupe-core)"
  step "./by_hand | tail -n 1"
  step "ldd by_hand | sort"
  ! ldd by_hand | grep -E 'libcaf|libssl|libcrypto|libboost' ||
    die "Troupe::core needs libraries of the actors"
}

# Removes the package, and what apt has installed for it.
removes() {
  local path
  step "dpkg -L troupe | sort >files"
  apt purge troupe
  apt autoremove --purge
  step "find / -xdev -iname '*troupe*' -not -path '/troupe*' -not -path '/proc/*' \
-not -path '$PWD*' >left"
  while read -r path; do
    [[ -d $path || ! -e $path ]] || echo "$path" >>left
  done <files
  [[ ! -s left ]] || die "apt has left $(<left)"
}

archive=$(echo "$PWD"/troupe-*.tar.gz)
deb=$(echo "$PWD"/troupe_*.deb)
[[ -f $archive && -f $deb ]] || die "not one of each here: $archive $deb"
cd "$(mktemp -d)"
lacks g++ cmake pkg-config trainer
! ldconfig -p | grep -E 'libcaf|libdnnl' || die "this Debian is not bare"

step mkdir archive
step tar -xf "$archive" -C archive --strip-components=1
glyphs=examples/glyphs/glyphs.toml
step "archive/bin/trainer train --config=archive/$glyphs | tail -n 3"
apt update
apt install "$deb"
step dpkg --verify troupe
step "dpkg-query -W troupe && trainer --version"
step "trainer train --config=/usr/share/doc/troupe/$glyphs | tail -n 3"
removes

apt install g++ cmake pkg-config
export PKG_CONFIG_PATH=$PWD/archive/lib/pkgconfig
builds archive/examples -DCMAKE_PREFIX_PATH="$PWD/archive"
unset PKG_CONFIG_PATH
apt install "$deb"
builds /usr/share/doc/troupe/examples
removes
echo "Archive and Debian package work here, and apt leaves nothing of the package."
