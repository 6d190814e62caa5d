#!/bin/bash
# Fails unless the commands of README.md, docs/ and the help texts run, and
# README's program learns its digits.
set -euo pipefail
python3 tests/usage/commands.py "$(dirname "$(readlink -f WORKSPACE)")" \
  tools/trainer tests/usage/command_exceptions.txt
tests/usage/digits | tee /dev/stderr | grep -q '^test accuracy 0.9'
