#!/bin/bash
# The Debian package of tools/package --deb: equal bytes twice, whatever the umask;
# its fields; unpacked into a folder, the program trains, and programs compile
# against the library by pkg-config and CMake and run. What apt does with it is
# tried by tools/bare_root --package.
set -euo pipefail
. tests/tools/skip_lib.sh
. tests/tools/package_lib.sh
command -v dpkg-deb dpkg-shlibdeps >/dev/null || skip "no tools of Debian here"

readonly deb=$(make_package one --deb)
(umask 077 && make_package two --deb >/dev/null)
cmp "$deb" "$TEST_TMPDIR/two/${deb##*/}" || die "equal sources, other bytes"
[[ ${deb##*/} == "troupe_${version}_amd64.deb" ]] || die "another name: $deb"

readonly root=$TEST_TMPDIR/root
dpkg-deb --raw-extract "$deb" "$root"
cp -r "$root/usr/share/doc/troupe/examples" "$TEST_TMPDIR/apart"
cd "$TEST_TMPDIR/apart"
(cd "$root" && md5sum --check --quiet DEBIAN/md5sums) || die "md5sums"
(cd "$root" && find usr -type f | sort) >files
diff <(cut -c 35- "$root/DEBIAN/md5sums") files || die "md5sums lacks files"
strange=$(find "$root/usr" ! -perm 644 -type f ! -name trainer -o -type d ! -perm 755)
[[ -z $strange ]] || die "other permissions: $strange"
strange=$(dpkg-deb --contents "$deb" | grep -v ' root/root ' || true)
[[ -z $strange ]] || die "files of others than root: $strange"

# The libraries are Debian's: each has its package among the dependencies, and
# none of them is in this package.
field() { dpkg-deb --field "$deb" "$1"; }
[[ $(field Version) == "$version" ]] || die "version $(field Version)"
for name in libc6 libcaf-core0.17 libdnnl2 libssl3 libstdc++6; do
  [[ ", $(field Depends)" == *", $name (>= "* ]] || die "$(field Depends)"
done
! grep '\.so' files || die "shared libraries"
size=$(du --apparent-size -ks "$root/usr" | cut -f 1)
(($(field Installed-Size) * 10 > size * 9 && $(field Installed-Size) < size * 2)) ||
  die "Installed-Size is $(field Installed-Size), not some $size"

# The program, and the page about it.
[[ $("$root/usr/bin/trainer" --version) == "trainer $version" ]] || die "--version"
! readelf -d "$root/usr/bin/trainer" | grep -E 'R(UN)?PATH' || die "an RPATH"
"$root/usr/bin/trainer" train --set train.epochs=1 --set data.train_count=1024 \
  --config="$root/usr/share/doc/troupe/examples/glyphs/glyphs.toml" >out.txt
grep -q '^test accuracy: ' out.txt || die "no accuracy: $(<out.txt)"
gzip -dc "$root/usr/share/man/man1/trainer.1.gz" >page
grep -q '^  trainer evaluate' <(sed 's/\\-/-/g' page) || die "$(<page)"

# The library. `prefix` is /usr where apt has installed it.
pkg_config() {
  PKG_CONFIG_LIBDIR=$root/usr/lib/x86_64-linux-gnu/pkgconfig \
    pkg-config --define-variable=prefix="$root/usr" "$@"
}
g++ $(pkg_config --cflags troupe) outside/{train,wide_and_deep}.cc -o train \
  $(pkg_config --libs troupe)
./train | grep -q '^test accuracy 0\.[89]' || die "train"
! readelf -d train | grep -E 'R(UN)?PATH' || die "an RPATH"
has_cmake || exit 0
cmake_core "$root/usr" 01_train_by_hand/train_by_hand.cc
! readelf -d core_build/train_by_hand | grep -E 'R(UN)?PATH' || die "an RPATH"
