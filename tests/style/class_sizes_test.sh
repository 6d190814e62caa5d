#!/bin/bash
exec python3 tests/style/class_sizes_test.py
