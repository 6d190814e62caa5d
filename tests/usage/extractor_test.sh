#!/bin/bash
exec python3 tests/usage/extractor_test.py
