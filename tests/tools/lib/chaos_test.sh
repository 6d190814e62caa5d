#!/bin/bash
exec python3 tests/tools/lib/chaos_test.py
