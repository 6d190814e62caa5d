#!/bin/bash
exec python3 tests/tools/process_garbage_test.py
