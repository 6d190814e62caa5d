#!/bin/bash
# docs/configuration.md is what the program prints. To write it anew:
#
#   bazel-bin/tools/trainer train --help=markdown > docs/configuration.md
set -euo pipefail
workspace=$(dirname "$(readlink -f WORKSPACE)")
diff "$workspace/docs/configuration.md" <(tools/trainer train --help=markdown)
