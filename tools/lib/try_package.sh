#!/bin/bash
# Tries ./troupe_*.deb in a bare Debian 12, step by step, and prints each command:
# apt installs it alone, and it trains; with g++, cmake and pkg-config installed
# programs are built against it and run; apt removes it, and nothing of it is left.
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
learned() { grep -q '^test accuracy 0\.[89]' out || die "it has not learned"; }
install='DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o Dpkg::Use-Pty=0'
examples=/usr/share/doc/troupe/examples
deb=$(echo "$PWD"/troupe_*.deb)
[[ -f $deb ]] || die "no package here, or several: $deb"
cd "$(mktemp -d)"

step apt-get update -qq
step "$install $deb >apt.log 2>&1" || die "$(tail -n 20 apt.log)"
step dpkg --verify troupe
step dpkg-query -W troupe
step "dpkg -L troupe | sort >files"
! command -v g++ cmake pkg-config || die "a compiler is here already: this Debian is not bare"
step trainer --version
step "trainer train --config=$examples/glyphs/glyphs.toml | tail -n 3"

step "$install g++ cmake pkg-config >apt.log 2>&1" || die "$(tail -n 20 apt.log)"
step cp -r $examples/outside $examples/01_train_by_hand .
step cmake -S outside -B build
step cmake --build build
step "build/train | tee out"
learned
step "g++ \$(pkg-config --cflags troupe) outside/{train,wide_and_deep}.cc \
-o train \$(pkg-config --libs troupe)"
step "./train | tee out"
learned
step "g++ \$(pkg-config --cflags troupe-core) 01_train_by_hand/*.cc \
-o by_hand \$(pkg-config --libs troupe-core)"
step "./by_hand | tail -n 1"
step "ldd by_hand | sort"
! ldd by_hand | grep -E 'libcaf|libssl|libcrypto|libprometheus' || die "not core"

step "apt-get purge -y -qq -o Dpkg::Use-Pty=0 troupe >apt.log 2>&1" ||
  die "$(tail -n 20 apt.log)"
step "find / -xdev -iname '*troupe*' -not -path '/troupe*' \
-not -path '/proc/*' >left"
while read -r path; do
  [[ -d $path || ! -e $path ]] || echo "$path" >>left
done <files
[[ ! -s left ]] || die "apt has left $(<left)"
echo "The Debian package works here, and nothing of it is left."
