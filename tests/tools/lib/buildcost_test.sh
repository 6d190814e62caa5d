#!/bin/bash
exec python3 tests/tools/lib/buildcost_test.py
