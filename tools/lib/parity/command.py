"""Trains random networks with the trainer and with PyTorch, and compares them
parameter by parameter.

    bazel build //tools:trainer
    tools/parity                            # 30 draws from a random seed on
    tools/parity --seed=17                  # that draw alone
    tools/parity --draws=10000 --jobs=2     # half an hour, with progress

A draw is a network (model.layers, or a small GPT, ViT, ResNet, LeNet or MLP), data,
loss, optimizer, learning rates, precision, mesh, schedule and micro-batches, often
with stops and resumes under another mesh; up to five steps. Compared are parameters,
also those of checkpoints on the way, running statistics, states of the optimizer,
averages, losses, gradient norms, learning rates, evaluations; which steps a loss
scale skips, which checkpoint is the best, where a run stops early.
docs/numerics.md says how far away numbers may be, tools/lib/parity/README.md which
keys are drawn.

Exits 0 when all draws are alike; 1 after one that is different, or in which the
trainer failed, with the command that repeats it. A draw that the trainer refuses
is counted. When all are alike, what the trainer knows and no draw has is listed.
"""

import argparse
import collections
import concurrent.futures
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings

import torch

from parity import coverage
from parity.program import DEADLINE_S
from parity.trial import Outcome, try_case

DRAWS = 30  # unless --draws or --seed is given
LINES_EVERY_S = 10  # time between lines of progress without a terminal
LINES_MAX = 8  # differences that are shown of a draw


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="tools/parity", usage="tools/parity [options]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int,
                        help="the first draw (random); without --draws the "
                        "only one")
    parser.add_argument("--draws", type=int, help="number of draws (%d)" %
                        DRAWS)
    parser.add_argument("--jobs", type=int, default=1,
                        help="draws at a time (1)")
    parser.add_argument("--precision", choices=["f64", "f32", "bf16", "f16"],
                        help="the precision of all draws (drawn)")
    parser.add_argument("--trainer", default="bazel-bin/tools/trainer",
                        help="the program (bazel-bin/tools/trainer)")
    parser.add_argument("--keep", metavar="DIR", help="folder that keeps "
                        "configurations, logs and checkpoints of all draws")
    parser.add_argument("--deadline", type=float, default=DEADLINE_S,
                        metavar="SECONDS", help="limit on each run of the "
                        "trainer (%d); a busy machine needs more" % DEADLINE_S)
    parser.add_argument("--plant", action="append", default=[],
                        metavar="SECTION.KEY=FACTOR", help="multiply a number "
                        "of PyTorch's side alone, to see that it is found")
    arguments = parser.parse_args()
    if not os.access(arguments.trainer, os.X_OK):
        parser.error("no program %s; build it: bazel build //tools:trainer"
                     % arguments.trainer)
    if arguments.draws is None:
        arguments.draws = DRAWS if arguments.seed is None else 1
    for name in ("draws", "jobs"):
        if getattr(arguments, name) < 1:
            parser.error("--%s=%d is below 1" % (name,
                                                 getattr(arguments, name)))
    if arguments.seed is None:
        arguments.seed = random.SystemRandom().randrange(1_000_000_000)
    arguments.plant = [parse_plant(parser, text) for text in arguments.plant]
    arguments.trainer = os.path.abspath(arguments.trainer)
    return arguments


def parse_plant(parser, text):
    try:
        name, factor = text.split("=")
        section, key = name.split(".")
        return section, key, float(factor)
    except ValueError:
        return parser.error("--plant=%s is not SECTION.KEY=FACTOR" % text)


def draw(arguments, root, seed):
    """Tries the case of a seed, in a process of its own."""
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")  # PyTorch's, of schedulers
    folder = os.path.join(root, "draw-%d" % seed)
    shutil.rmtree(folder, ignore_errors=True)
    try:
        outcome = try_case(arguments.trainer, seed, folder,
                           arguments.precision, arguments.plant,
                           arguments.deadline)
    except Exception:  # pylint: disable=broad-except
        # An error of the tester or of PyTorch does not end the other draws.
        outcome = Outcome(None, "broken", [traceback.format_exc()])
    if not arguments.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return seed, outcome


class Campaign:
    """The draws of one call."""

    def __init__(self, arguments):
        self._arguments = arguments
        self._start = time.monotonic()
        self._shown_at = 0.0
        # {precision: Counter of words}; "" of draws without a case.
        self._counts = collections.defaultdict(collections.Counter)

    def run(self, root):
        arguments = self._arguments
        seeds = range(arguments.seed, arguments.seed + arguments.draws)
        if arguments.jobs == 1:
            for seed in seeds:
                self._take(*draw(arguments, root, seed))
            return
        with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
            running = set()
            for seed in seeds:
                if len(running) >= 2 * arguments.jobs:
                    done, running = concurrent.futures.wait(
                        running, return_when=concurrent.futures.FIRST_COMPLETED)
                    for each in done:
                        self._take(*each.result())
                running.add(pool.submit(draw, arguments, root, seed))
            for each in concurrent.futures.as_completed(running):
                self._take(*each.result())

    def _take(self, seed, outcome):
        self._counts[outcome.precision()][outcome.word] += 1
        if outcome.word in ("different", "failed", "broken", "refused"):
            self._report(seed, outcome)
        self._progress()

    def _report(self, seed, outcome):
        arguments = self._arguments
        lines = outcome.lines[:LINES_MAX]
        if len(outcome.lines) > LINES_MAX:
            lines.append("and %d more" % (len(outcome.lines) - LINES_MAX))
        precision = (" --precision=" + arguments.precision
                     if arguments.precision else "")
        print("draw %d: %s\n    %s\n    to repeat it: tools/parity --seed=%d%s"
              % (seed, outcome if outcome.case else outcome.word,
                 "\n    ".join(lines), seed, precision), flush=True)

    def _progress(self):
        passed = time.monotonic() - self._start
        if passed >= self._shown_at + LINES_EVERY_S:
            self._shown_at = passed
            print("%4.0f s  %d of %d draws: %s" % (
                passed, self._total().total(), self._arguments.draws,
                words(self._total())), flush=True)

    def _total(self):
        return sum(self._counts.values(), collections.Counter())

    def summary(self):
        for precision, counts in sorted(self._counts.items()):
            print("%4s: %s" % (precision, words(counts)))
        print("%d draws from seed %d on in %.0f s: %s" % (
            self._total().total(), self._arguments.seed,
            time.monotonic() - self._start, words(self._total())), flush=True)

    def wrong(self):
        return sum(self._total()[word]
                   for word in ("different", "failed", "broken"))


def words(counts):
    return ", ".join("%d %s" % (count, word)
                     for word, count in sorted(counts.items()))


def main():
    arguments = parse_arguments()
    root = os.path.abspath(arguments.keep or tempfile.mkdtemp(prefix="parity-"))
    campaign = Campaign(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        campaign.run(root)
    except KeyboardInterrupt:
        pass
    finally:
        if not arguments.keep:
            shutil.rmtree(root, ignore_errors=True)
    if not campaign.wrong():
        for line in coverage.missing(arguments.trainer):
            print("no draw has " + line)
    campaign.summary()
    return 1 if campaign.wrong() else 0
