#!/bin/bash
exec python3 tests/tools/launchers_real_test.py
