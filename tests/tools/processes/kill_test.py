"""Killed (SIGKILL) at 50 random moments while a checkpoint is written after
each step, a run goes on to the bits of one that was not killed.

The moments are drawn by a seed over the run's length, and come when the folder
shows them: a step's checkpoint is begun and has so many files, or has its name.
"""

import os
import random
import signal
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join("tools", "lib"))
sys.path.insert(0, os.path.join("tests", "tools", "processes"))

# pylint: disable=wrong-import-position
from chaos import folder
from chaos.program import Program
from several_processes import TRAINER, options

SEED = 1
RUNS = 10
KILLS = 5  # of one run
STEPS_MAX = 12  # the last moment of a run, about
KEEP = 2
DEADLINE_S = 120

LAYOUTS = (
    ["--ranks=1"],
    ["--ranks=2"],
    ["--set", "mesh.pp=2", "--set", "mesh.cuts=2",
     "--set", "train.micro_batch_size=4"],
)

JOB = options(model__kind="mlp", model__widths=16, data__kind="synthetic",
              data__train_count=256, data__test_count=32,
              train__global_batch_size=16, optimizer__lr=0.05,
              optimizer__momentum=0.9, checkpoint__keep=KEEP)


class Moment:
    """When a checkpoint of step `step` or later is there: begun, with so many
    `files`, or committed where `files` is None."""

    def __init__(self, step, files):
        self.step, self.files = step, files

    def has_come(self, path):
        if self.files is None:
            return any(step >= self.step for step in folder.steps(path))
        for name in folder.unfinished(path):
            if int(name[len("step-"):].split(".")[0]) >= self.step:
                within = folder.names(os.path.join(path, name))
                if len(within) >= self.files:
                    return True
        return False


class KillTest(unittest.TestCase):

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = temporary.name

    def start(self, *words):
        run = Program([TRAINER, "train", *JOB, *words], self.root)
        self.addCleanup(run.close)
        return run

    def succeeds(self, *words):
        run = self.start(*words)
        self.assertEqual(run.end(DEADLINE_S), 0, run.err())
        return [line for line in run.out().splitlines()
                if line.startswith("test accuracy")]

    def kill_at(self, path, layout, moment):
        run = self.start(*layout, "--resume", *options(
            checkpoint__dir=path, checkpoint__every=1,
            train__steps=1000000000))
        self.assertTrue(
            run.wait_until(lambda: moment.has_come(path), DEADLINE_S),
            run.err())
        before = folder.steps(path)
        run.signal(signal.SIGKILL)
        self.assertEqual(run.end(DEADLINE_S), -signal.SIGKILL)
        self.assertEqual(folder.problems(path, before, KEEP), [])

    def check_run(self, number, rng):
        layout = LAYOUTS[number % len(LAYOUTS)]
        path = os.path.join(self.root, "killed-%d" % number)
        for step in sorted(rng.randint(1, STEPS_MAX) for _ in range(KILLS)):
            # A run may be further than was drawn for the next.
            step = max([step] + [s + 1 for s in folder.steps(path)])
            self.kill_at(path, layout,
                         Moment(step, rng.choice((None, 0, 1, 2, 3, 4, 5))))
        steps = max(folder.steps(path), default=0) + 3
        whole = os.path.join(self.root, "whole-%d" % number)
        end = self.succeeds(*layout, "--resume", *options(
            checkpoint__dir=path, checkpoint__every=1, train__steps=steps))
        want = self.succeeds(*layout, *options(
            checkpoint__dir=whole, train__steps=steps))
        self.assertEqual(end, want)
        self.assertEqual(folder.unfinished(path), [])
        self.assertEqual(
            folder.differences(folder.checkpoint(path, steps),
                               folder.checkpoint(whole, steps)), [])

    def test_fifty_kills(self):
        rng = random.Random(SEED)
        for number in range(RUNS):
            with self.subTest(run=number, seed=SEED):
                self.check_run(number, rng)


if __name__ == "__main__":
    unittest.main()
