#!/bin/bash
exec python3 tests/tools/processes/process_deaths_test.py
