#!/bin/bash
exec python3 tests/tools/processes/process_garbage_test.py
