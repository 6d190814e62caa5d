#!/bin/bash
# Each script that builds or installs shows its usage with --help or -h, wherever
# that stands and from whichever folder it is called, and does nothing else.
set -euo pipefail
die() {
  echo "FAILED: $*" >&2
  exit 1
}
tools=$PWD/tools
cd /
count=0
for script in bare_root buildcost gpu_bundle package quickstart setup test; do
  for arguments in "--help" "-h" "--other=1 --help"; do
    PATH=/usr/bin:/bin "$tools/$script" $arguments >"$TEST_TMPDIR/out" 2>&1 ||
      die "$script $arguments: $(cat "$TEST_TMPDIR/out")"
    grep -q "^ *tools/$script" "$TEST_TMPDIR/out" ||
      die "$script $arguments names no use: $(cat "$TEST_TMPDIR/out")"
    ! grep -q '^set -\|^#' "$TEST_TMPDIR/out" ||
      die "$script $arguments shows code: $(cat "$TEST_TMPDIR/out")"
    count=$((count + 1))
  done
done
((count == 21)) || die "$count calls"
