#!/bin/bash
# usage_test.sh HEADER...: the usage of every header of the workspace has been
# compiled by a target of tests/usage, but for that of HEADER... The runfiles hold
# a link to the workspace's WORKSPACE file, and the lists of what was compiled.
exec python3 tests/usage/usage.py missing \
  "$(dirname "$(readlink -f WORKSPACE)")" \
  tests/usage/usage*.txt "$@"
