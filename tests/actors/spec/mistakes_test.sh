#!/bin/bash
cd tests/actors/spec &&
  exec python3 mistakes_test.py mistakes.cc mistakes_errors.txt
