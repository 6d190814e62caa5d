"""Runs the benchmarks of the bundle, beside PyTorch if it is installed.

    for piece in pieces(bundle, torch=True):
        session.run(piece)

Each prints one JSON object per row (tools/bench/report.h). gpu_check.json has
the rows, and the table the mean of their ratios.
"""

import json
import math

from gpu_check.bundle import complaint
from gpu_check.session import FAILED, OK, Piece, Result

# A benchmark begins no further case when its budget is spent; the case in
# progress may take the rest of its limit.
STEP_LIMIT_S, STEP_BUDGET_S = 75, 45
COMPILE_LIMIT_S, COMPILE_BUDGET_S = 90, 30
KERNEL_LIMIT_S, KERNEL_BUDGET_S = 100, 75


def rows_of(text):
    """Returns the rows that a benchmark has printed; skips other lines."""
    rows = []
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and "case" in row and "ours" in row:
            rows.append(row)
    return rows


def mean_ratio(rows):
    """Returns the geometric mean of the ratios; None if there are none."""
    logs = [math.log(row["ratio"]) for row in rows
            if isinstance(row.get("ratio"), (int, float)) and row["ratio"] > 0]
    return math.exp(sum(logs) / len(logs)) if logs else None


def says(rows):
    """Returns "18 rows; / torch eager 5.1x, / library 0.98x"."""
    kinds = {}
    for row in rows:
        name, slash, peer = row["case"].rpartition(" / ")
        if slash and not name.startswith("geomean"):
            kinds.setdefault(peer, []).append(row)
    means = ["/ %s %.2fx" % (kind, mean_ratio(of_kind))
             for kind, of_kind in sorted(kinds.items())
             if mean_ratio(of_kind) is not None]
    return "; ".join(["%d rows" % len(rows)] + ([", ".join(means)]
                                                if means else []))


def bench(bundle, words, limit_s):
    outcome = bundle.run(words, limit_s)
    rows = rows_of(outcome.out)
    # A benchmark reports the cases that it could not run, and goes on.
    notes = outcome.err.strip().splitlines()[-20:]
    if outcome.timed_out or outcome.code != 0 or not rows:
        return Result(FAILED, complaint(outcome, limit_s), rows=rows,
                      notes=notes)
    return Result(OK, says(rows), rows=rows, notes=notes)


def piece(bundle, name, words, limit_s):
    return Piece(name, "benchmarks", limit_s,
                 lambda limit: bench(bundle, words, limit))


def pieces(bundle, torch):
    peer = ["--python=" + bundle.path("peer_python")] if torch else []
    step = ["bin/gpu_step", "--json", "--seconds=0.4"] + peer
    yield piece(bundle, "steps", step + [
        "--budget_s=%d" % STEP_BUDGET_S, "--peer_modes=eager,graphs"],
                STEP_LIMIT_S)
    yield piece(bundle, "kernels", [
        "bin/gpu_kernels", "--json", "--seconds=0.01",
        "--budget_s=%d" % KERNEL_BUDGET_S] + peer, KERNEL_LIMIT_S)
    # Last, as compiling takes longest and matters least for steps this small.
    if torch:
        yield piece(bundle, "steps beside compiled", step + [
            "--rounds=2", "--budget_s=%d" % COMPILE_BUDGET_S,
            "--peer_modes=compile"], COMPILE_LIMIT_S)
