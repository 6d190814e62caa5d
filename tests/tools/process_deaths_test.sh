#!/bin/bash
exec python3 tests/tools/process_deaths_test.py
