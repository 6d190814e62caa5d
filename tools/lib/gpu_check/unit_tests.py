"""Runs the GPU tests of the bundle, each as a piece, and reads their results.

    for piece in pieces(bundle):
        session.run(piece)

A test skips itself if there is no GPU. compute-sanitizer runs a few small ones
(sanitizer_pieces) with each of its tools.
"""

import concurrent.futures
import json
import os
import re

from gpu_check.bundle import complaint
from gpu_check.session import FAILED, OK, SKIPPED, Piece, Result

LIMIT_S = 75
SANITIZER_LIMIT_S = 45
# Tests of Troupe's own kernels on small shapes: under a sanitizer each launch
# takes milliseconds.
SANITIZED = ("probes_gpu_test", "optimizer_gpu_test",
             "matrix_kernels_gpu_test")
# A few steps of a small network, to check the memory of a job.
TRAINING = ["bin/trainer", "train"] + [
    word for setting in (
        "train.device=cuda:0", "train.steps=3", "data.kind=synthetic",
        "data.train_count=256", "data.test_count=32", "model.kind=mlp",
        "model.widths=16", "log.progress=off")
    for word in ("--set", setting)]
# initcheck does not see what the host writes to memory that it shares with the
# GPU, and the tests have their operands there.
TOOLS = (("memcheck", SANITIZED + ("trainer",)),
         ("racecheck", SANITIZED),  # only Troupe's own kernels
         ("initcheck", ("trainer",)))
# Permits several ranks on one GPU with NCCL 2.30 or newer.
ENV = {"NCCL_MULTI_RANK_GPU_ENABLE": "1"}
TAIL_LINES = 40
# The op suite has thousands of cases, a few milliseconds each, most of them on
# the host: several processes share them, as Bazel's shards do.
SHARDS = {"ops_gpu_test": 12}


def counts(report):
    """Returns (passed, failed, skipped, names of failed tests) of GoogleTest's
    JSON."""
    passed = failed = skipped = 0
    names = []
    for suite in report.get("testsuites", []):
        for case in suite.get("testsuite", []):
            if case.get("failures"):
                failed += 1
                names.append("%s.%s" % (case.get("classname", ""),
                                        case.get("name", "")))
            elif case.get("result") == "SKIPPED":
                skipped += 1
            elif case.get("result") == "COMPLETED":
                passed += 1
    return passed, failed, skipped, names


def why_skipped(out):
    """Returns the first reason that GoogleTest prints; its JSON lacks it."""
    match = re.search(r": Skipped\n([^\n\[]+)\n", out)
    return match.group(1).strip() if match else ""


def tail(outcome):
    return "\n".join((outcome.out + outcome.err).splitlines()[-TAIL_LINES:])


def judge(outcome, report, limit_s):
    """Returns the result of a test; its JSON is `report`, or None if it wrote
    none."""
    if report is None or outcome.timed_out or outcome.code < 0:
        return Result(FAILED, complaint(outcome, limit_s), output=tail(outcome))
    passed, failed, skipped, names = counts(report)
    numbers = {"passed": passed, "failed": failed, "skipped": skipped}
    if failed or outcome.code != 0:
        words = "%d of %d failed: %s" % (failed, passed + failed + skipped,
                                         ", ".join(names[:3]) or
                                         complaint(outcome))
        return Result(FAILED, words, output=tail(outcome), **numbers)
    if passed == 0:
        words = "%d skipped" % skipped if skipped else "it has no case here"
        why = why_skipped(outcome.out)
        return Result(SKIPPED, words + (": " + why if why else ""), **numbers)
    words = "%d passed" % passed
    if skipped:
        words += ", %d skipped" % skipped
    return Result(OK, words, **numbers)


def run_shard(bundle, test, limit_s, shard, shards):
    name = os.path.basename(test)
    path = bundle.scratch_path("%s.%d.json" % (name, shard))
    env = dict(ENV, TEST_TMPDIR=bundle.scratch.name,
               GTEST_TOTAL_SHARDS=str(shards), GTEST_SHARD_INDEX=str(shard))
    outcome = bundle.run([test, "--gtest_output=json:" + path], limit_s, env)
    try:
        with open(path, encoding="utf-8") as text:
            report = json.load(text)
    except (OSError, ValueError):
        report = None
    return judge(outcome, report, limit_s)


def merged(results):
    """Merges the results of a test's shards; the first failed one says why."""
    if len(results) == 1:
        return results[0]
    numbers = {what: sum(result.details.get(what, 0) for result in results)
               for what in ("passed", "failed", "skipped")}
    failed = [result for result in results if result.state == FAILED]
    if failed:
        words = "%d of %d shards failed; one: %s" % (
            len(failed), len(results), failed[0].words)
        return Result(FAILED, words, output=failed[0].details.get("output", ""),
                      **numbers)
    if numbers["passed"] == 0:
        return Result(SKIPPED, results[0].words, **numbers)
    words = "%d passed" % numbers["passed"]
    if numbers["skipped"]:
        words += ", %d skipped" % numbers["skipped"]
    return Result(OK, "%s, in %d shards" % (words, len(results)), **numbers)


def run_test(bundle, test, limit_s):
    shards = min(SHARDS.get(os.path.basename(test), 1), os.cpu_count() or 1)
    with concurrent.futures.ThreadPoolExecutor(shards) as threads:
        return merged(list(threads.map(
            lambda shard: run_shard(bundle, test, limit_s, shard, shards),
            range(shards))))


def pieces(bundle):
    for test in bundle.tests():
        yield Piece(os.path.basename(test), "tests", LIMIT_S,
                    lambda limit_s, test=test: run_test(bundle, test, limit_s))


def sanitize(bundle, sanitizer, tool, name, limit_s):
    before = [sanitizer, "--tool", tool, "--error-exitcode", "9",
              "--print-limit", "5"]
    words = TRAINING if name == "trainer" else ["tests/" + name]
    outcome = bundle.run(words, limit_s,
                         dict(ENV, TEST_TMPDIR=bundle.scratch.name), before)
    lines = [line for line in (outcome.out + outcome.err).splitlines()
             if line.startswith("=========")]
    last = lines[-1].strip("= ") if lines else ""
    if "Device not supported" in outcome.out + outcome.err:
        return Result(SKIPPED, "compute-sanitizer: this machine's GPU is not "
                      "supported", output=tail(outcome))
    if outcome.code != 0 or outcome.timed_out:
        why = complaint(outcome, limit_s) if outcome.timed_out or not last \
            else last
        return Result(FAILED, why, output=tail(outcome))
    return Result(OK, last)


def sanitizer_pieces(bundle, sanitizer):
    for tool, names in TOOLS:
        for name in names:
            if name != "trainer" and not os.path.exists(
                    bundle.path("tests", name)):
                continue
            yield Piece(
                "%s %s" % (tool, name), "sanitizers", SANITIZER_LIMIT_S,
                lambda limit_s, tool=tool, name=name: sanitize(
                    bundle, sanitizer, tool, name, limit_s))
