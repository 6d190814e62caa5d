#!/bin/bash
exec python3 tests/tools/mpi_processes_test.py
