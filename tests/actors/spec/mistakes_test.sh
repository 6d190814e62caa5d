#!/bin/bash
# mistakes_test.sh SOURCE ERRORS
exec python3 tests/actors/spec/mistakes_test.py "$@"
