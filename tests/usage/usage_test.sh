#!/bin/bash
# usage_test.sh HEADER...: fails unless a target of tests/usage has compiled the
# usage of every header of the workspace, except HEADER... The runfiles contain
# a link to the workspace's WORKSPACE file, and the lists of compiled headers.
exec python3 tests/usage/usage.py missing \
  "$(dirname "$(readlink -f WORKSPACE)")" \
  tests/usage/usage*.txt "$@"
