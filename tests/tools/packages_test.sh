#!/bin/bash
# No header, library, program or Python module that this tree uses is of a Debian
# package that no list of tools/lib brings. It reads the real workspace: the
# runfiles hold a link to its WORKSPACE file.
set -euo pipefail
. tests/tools/skip_lib.sh
command -v dpkg-query >/dev/null || skip "no dpkg here"
exec /usr/bin/python3 tests/tools/packages/packages_test.py \
  "$(dirname "$(readlink -f WORKSPACE)")"
