#!/bin/bash
# Fails unless the commands of README.md, docs/ and the help texts run, and
# README's programs learn their digits.
set -euo pipefail
python3 tests/usage/commands.py "$(dirname "$(readlink -f WORKSPACE)")" \
  tools/trainer tests/usage/command_exceptions.txt
tests/usage/loop | tee /dev/stderr | grep -q '^epoch 3: loss 0\.[0-2]'
tests/usage/job | tee /dev/stderr | grep -q '^test accuracy 0.9'
