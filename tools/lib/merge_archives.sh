#!/bin/bash
# merge_archives.sh AR OUT.a ARCHIVE... -- NAME...
#
# Writes the members of all ARCHIVEs, and of the system's archives called NAME,
# into OUT.a. Equal input gives equal bytes.
set -euo pipefail
ar=$1 out=$2
shift 2
{
  echo "create $out"
  while [[ $1 != -- ]]; do
    echo "addlib $1"
    shift
  done
  shift
  for name in "$@"; do
    path=$(gcc -print-file-name="$name")
    [[ $path == /* ]] || { echo "the compiler finds no $name" >&2; exit 1; }
    echo "addlib $path"
  done
  echo save
} | "$ar" -D -M
