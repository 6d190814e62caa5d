#!/bin/bash
exec python3 tests/style/messages_test.py
