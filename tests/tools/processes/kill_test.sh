#!/bin/bash
exec python3 tests/tools/processes/kill_test.py
