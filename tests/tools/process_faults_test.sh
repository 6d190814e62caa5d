#!/bin/bash
exec python3 tests/tools/process_faults_test.py
