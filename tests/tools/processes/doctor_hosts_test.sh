#!/bin/bash
exec python3 tests/tools/processes/doctor_hosts_test.py
