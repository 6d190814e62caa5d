#!/bin/bash
# The Python that $TROUPE_PYTHON names (else python3) as it is by itself: without
# the libraries that with_cuda put in the path, so that PyTorch takes its own.
export LD_LIBRARY_PATH=${TROUPE_OUTER_LIBRARY_PATH:-}
[[ -n $LD_LIBRARY_PATH ]] || unset LD_LIBRARY_PATH
exec "${TROUPE_PYTHON:-python3}" "$@"
