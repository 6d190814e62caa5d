#!/bin/bash
exec python3 tests/style/public_targets_test.py
