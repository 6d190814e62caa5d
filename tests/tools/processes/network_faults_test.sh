#!/bin/bash
# On three hosts of its own, where they can be made.
set -euo pipefail
. tests/tools/skip_lib.sh
readonly HOSTS=(tools/network/network_hosts --hosts=3 --)
readonly CANNOT_MAKE_HOSTS=77
code=0
words=$("${HOSTS[@]}" true 2>&1) || code=$?
((code != CANNOT_MAKE_HOSTS)) || skip "${words//[\"<>&]/ }"
exec "${HOSTS[@]}" python3 tests/tools/processes/network_faults_test.py
