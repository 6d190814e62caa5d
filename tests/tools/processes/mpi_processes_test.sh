#!/bin/bash
exec python3 tests/tools/processes/mpi_processes_test.py
