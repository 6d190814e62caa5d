#!/bin/bash
exec python3 tests/tools/processes/process_faults_test.py
