#!/bin/bash
exec python3 tests/tools/same_bits_test.py
