#!/bin/bash
# Runs check_style.py on the real workspace: the runfiles hold a link to its
# WORKSPACE file.
exec python3 tests/style/check_style.py \
  "$(dirname "$(readlink -f WORKSPACE)")"
