#!/bin/bash
exec python3 tests/style/check_style_test.py
