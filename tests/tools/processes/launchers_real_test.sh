#!/bin/bash
exec python3 tests/tools/processes/launchers_real_test.py
