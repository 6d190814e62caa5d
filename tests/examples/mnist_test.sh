#!/bin/bash
# examples/mnist/mnist.toml is valid, and reaches 97.5 % where MNIST's files are:
# below $TROUPE_DATA/mnist, or below shared/data/mnist of a folder above the
# sources.
set -euo pipefail
train=(tools/trainer train --config=examples/mnist/mnist.toml
  --set checkpoint.dir="$TEST_TMPDIR/checkpoints")
"${train[@]}" --print-config

find_data() {
  if [[ -n ${TROUPE_DATA:-} ]]; then
    echo "$TROUPE_DATA/mnist"
    return
  fi
  # Bazel links the configuration to the one in the source tree.
  local above
  above=$(dirname "$(realpath examples/mnist/mnist.toml)")
  while [[ $above != / ]]; do
    if [[ -d $above/shared/data/mnist ]]; then
      echo "$above/shared/data/mnist"
      return
    fi
    above=$(dirname "$above")
  done
}

# Tells Bazel that this test did not run, and why; without the report, a script
# that ends with 0 has passed.
skip() {
  echo "skipped: $1"
  cat >"${XML_OUTPUT_FILE:-/dev/null}" <<XML
<testsuites><testsuite name="mnist_test" tests="1" skipped="1">
<testcase name="mnist_test" status="notrun"><skipped message="$1"/></testcase>
</testsuite></testsuites>
XML
  exit 0
}

folder=$(find_data)
[[ -n $folder ]] ||
  skip "no MNIST here: set TROUPE_DATA to the folder above mnist"
if [[ ! -d $folder ]]; then
  echo "FAILED: TROUPE_DATA is set, but there is no folder $folder" >&2
  exit 1
fi
out=$("${train[@]}" --set data.path="$folder")
echo "$out"
accuracy=$(sed -n 's/^test accuracy: \([0-9.]*\)%.*/\1/p' <<<"$out")
awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy >= 97.5) }'
