#!/bin/bash
# Checks that the benchmark runs, and that rows have the fields of all benchmarks.
set -euo pipefail
tools/bench/start/start --trainer=tools/trainer --ranks 2 --rounds=1 --json |
  python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
assert [row["case"] for row in rows] == [
    "first_step", "one_step_run", "cpu_time"], rows
for row in rows:
    assert row["bench"] == "start" and row["ranks"] == 2, row
    assert row["unit"] == "s" and row["ours"] > 0, row
    assert row["peer"] is None and row["ratio"] is None, row
assert rows[0]["ours"] <= rows[1]["ours"], rows
'
