#!/bin/bash
exec python3 tests/tools/processes/same_bits_test.py
