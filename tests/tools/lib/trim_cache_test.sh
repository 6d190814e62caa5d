#!/bin/bash
exec python3 tests/tools/lib/trim_cache_test.py
