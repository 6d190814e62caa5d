#!/bin/bash
exec python3 -W ignore::ResourceWarning tests/tools/lib/gpu_check_test.py
