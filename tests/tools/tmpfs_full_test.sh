#!/bin/bash
# The disk is full (a tmpfs of 1 MiB): a checkpoint that does not fit ends the
# run with one line and leaves the last good one unchanged; with more room the
# run resumes to the same bits. Mounting needs root or user namespaces.
set -euo pipefail
. tests/tools/skip_lib.sh

# The mounts are in a namespace of this test, and end with it.
if [[ ${1:-} != in_namespace ]]; then
  for user in '' '--user --map-root-user'; do
    # shellcheck disable=SC2086
    if unshare --mount $user mount -t tmpfs test "$TEST_TMPDIR" 2>/dev/null; then
      exec unshare --mount $user "$0" in_namespace
    fi
  done
  skip 'no tmpfs can be mounted: it needs root, or user namespaces'
fi
. tests/tools/trainer_lib.sh
mkdir disk
mount -t tmpfs -o size=1m test disk

# 256 x 256 weights: a checkpoint of 560 KiB, of which one fits.
wide=(train --config=tiny.toml --set model.widths=256,256
  --set checkpoint.dir=disk/saved)
quietly "${wide[@]}" --set train.steps=10
cp -r disk/saved before

untouched() {
  [[ $(names_in disk/saved) == step-00000010 ]] ||
    die "left: $(names_in disk/saved)"
  diff -r --exclude=.lock before disk/saved ||
    die 'the good checkpoint was touched'
}

no_space='No space left on device; free space there or write to another disk'
on=('' --set\ mesh.pp=2\ --set\ mesh.cuts=2)
for layout in "${on[@]}"; do
  # shellcheck disable=SC2086
  fails_with 1 "trainer: *cannot write disk/saved/step-00000020.tmp-*/*.safetensors: $no_space" \
    "${wide[@]}" $layout --resume --set train.steps=20
  untouched
done

# Not even a line fits.
rm disk/saved/.lock
cat /dev/zero >disk/ballast 2>/dev/null || true
fails_with 1 "trainer: cannot write disk/saved/.lock: $no_space" \
  "${wide[@]}" --resume --set train.steps=20
untouched
fails_with 1 "trainer: cannot write disk/log.jsonl: $no_space" \
  "${wide[@]}" --set checkpoint.dir= --set train.steps=200 \
  --set log.file=disk/log.jsonl --set log.every=1
rm disk/ballast disk/log.jsonl

# With more room the run resumes and ends at the same bits.
mount -o remount,size=2m disk
quietly "${wide[@]}" --resume --set train.steps=20
quietly "${wide[@]}" --set train.steps=20 --set checkpoint.dir=whole
for file in model optimizer; do
  same_bytes "disk/saved/step-00000020/$file.safetensors" \
    "whole/step-00000020/$file.safetensors"
done
