#!/bin/bash
exec python3 tests/tools/kill_test.py
