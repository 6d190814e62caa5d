"""Benchmarks of the bundle, beside PyTorch where there is one.

    for piece in pieces(bundle, torch=True):
        session.run(piece)

Each prints one JSON object a row (tools/bench/report.h); the rows go into
gpu_check.json, and a mean of their ratios into the table.
"""

import json
import math

from gpu_check.bundle import complaint
from gpu_check.session import FAILED, OK, Piece, Result

# A benchmark stops by itself when its budget is spent; what it has begun may
# take the rest of its limit.
STEP_LIMIT_S, STEP_BUDGET_S = 75, 45
COMPILE_LIMIT_S, COMPILE_BUDGET_S = 90, 30
KERNEL_LIMIT_S, KERNEL_BUDGET_S = 100, 75


def rows_of(text):
    """What a benchmark has printed; lines that are no rows are left out."""
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
    """The geometric mean; None without ratios."""
    logs = [math.log(row["ratio"]) for row in rows
            if isinstance(row.get("ratio"), (int, float)) and row["ratio"] > 0]
    return math.exp(sum(logs) / len(logs)) if logs else None


def says(rows):
    """"18 rows; / torch eager 5.1x, / library 0.98x"."""
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
    # What it could not run it tells, and goes on.
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
    # Last: compiling takes longest, and says least of steps this small.
    if torch:
        yield piece(bundle, "steps beside compiled", step + [
            "--rounds=2", "--budget_s=%d" % COMPILE_BUDGET_S,
            "--peer_modes=compile"], COMPILE_LIMIT_S)
