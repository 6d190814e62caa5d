#!/bin/bash
# Runs the Python that $TROUPE_PYTHON names (else python3) without the libraries
# that with_cuda added to the path, so that PyTorch uses its own.
export LD_LIBRARY_PATH=${TROUPE_OUTER_LIBRARY_PATH:-}
[[ -n $LD_LIBRARY_PATH ]] || unset LD_LIBRARY_PATH
exec "${TROUPE_PYTHON:-python3}" "$@"
