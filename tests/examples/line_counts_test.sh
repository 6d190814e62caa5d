#!/bin/bash
# Programs in the manner of PyTorch are about as long as with PyTorch.
exec python3 tests/examples/line_counts.py "$@"
