#!/bin/bash
exec python3 tests/style/headers_alone_test.py
