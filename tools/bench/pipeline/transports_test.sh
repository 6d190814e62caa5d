#!/bin/bash
# Checks the rows of the benchmark of transports between stages.
set -euo pipefail
die() {
  echo "FAILED: $*" >&2
  exit 1
}
readonly TRANSPORTS=tools/bench/pipeline/transports

short=(--case=mlp8 --micro_batches=2 --seconds=0.1 --rounds=1)
"$TRANSPORTS" "${short[@]}" --json >rows.txt
python3 - <<'END' || die "$(cat rows.txt)"
import json

rows = [json.loads(line) for line in open("rows.txt")]
assert [row["case"] for row in rows] == [
    "mlp8 m=2 1f1b one process", "mlp8 m=2 1f1b shm", "mlp8 m=2 1f1b tcp"], rows
assert all(row["ranks"] == 2 and row["unit"] == "ms" and row["ours"] > 0
           for row in rows), rows
assert [row["peer"] for row in rows] == [None] + 2 * [rows[0]["ours"]], rows
END

"$TRANSPORTS" "${short[@]}" --schedule=2f2b 2>err.txt && die "2f2b is a schedule"
grep -q 'must be one of' err.txt || die "it says: $(cat err.txt)"
