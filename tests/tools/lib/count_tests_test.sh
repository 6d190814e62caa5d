#!/bin/bash
exec python3 tests/tools/lib/count_tests_test.py
