#!/bin/bash
# enter_root.sh ROOT CUDA RESULTS COMMAND...
#
# Makes the folder ROOT the root of the file system, with /proc, /sys and a small
# /dev, and runs each COMMAND there by bash in /troupe, with an environment
# as after a login. CUDA is a folder that it mounts on /usr/local/cuda, or "".
# Adds a line to the file RESULTS at the end of each: seconds and exit code.
#
# tools/bare_root starts it as process 1 of namespaces of its own. The old root is
# left behind by pivot_root instead of chroot: inside a chroot the kernel refuses
# user namespaces, and Bazel would run without its sandbox.
set -euo pipefail
root=$1 cuda=$2
exec {results}>>"$3"
shift 3

mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --rbind /sys sys
mount -t tmpfs -o mode=755 dev dev
for name in null zero full random urandom tty; do
  touch "dev/$name"
  mount --bind "/dev/$name" "dev/$name"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts dev/pts
mount -t tmpfs -o mode=1777 shm dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for number in 0 1 2; do
  names=(stdin stdout stderr)
  ln -s "fd/$number" "dev/${names[number]}"
done
if [[ -n $cuda ]]; then
  mkdir -p usr/local/cuda
  mount --bind "$(realpath "$cuda")" usr/local/cuda
  mount -o remount,bind,ro usr/local/cuda
fi

mkdir -p .outside
pivot_root . .outside
umount --lazy /.outside
rmdir /.outside
cd /troupe

environment=(HOME=/root USER=root TERM="${TERM:-dumb}"
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
for name in http_proxy https_proxy no_proxy; do
  [[ -z ${!name:-} ]] || environment+=("$name=${!name}")
done
for command in "$@"; do
  begin=$SECONDS code=0
  env -i "${environment[@]}" bash -c "$command" {results}>&- || code=$?
  printf '%d %d\n' $((SECONDS - begin)) "$code" >&"$results"
done
