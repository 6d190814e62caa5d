#!/bin/bash
cd tests/usage && exec python3 -m unittest extractor_test commands_test
