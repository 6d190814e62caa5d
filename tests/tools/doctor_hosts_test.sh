#!/bin/bash
exec python3 tests/tools/doctor_hosts_test.py
