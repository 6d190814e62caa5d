"""One round: a job, some faults in a row, and a last run without one.

    trial = Trial(trainer, machine, folder, seed=1, number=17, ...)
    trial.run()                         # [(fault, outcome)]; Wrong otherwise

(seed, number) determines all random numbers. The moments of faults are
fractions of the time of an undisturbed run on this machine, so that a repeated
round is similar, but not the same.
"""

import contextlib
import os
import random
import re
import time

from chaos import faults, folder, jobs
from chaos.faults import Wrong
from chaos.program import Program

FAULTS_MAX = 3  # limit on the faults of a round


class Disk:
    """The folder of checkpoints of a round, and its disk."""

    def __init__(self, root, keep, deadline_s):
        self.root = root
        self.path = os.path.join(root, "saved")
        self.keep = keep
        self.deadline_s = deadline_s
        self.before = []  # steps that were committed when the fault struck
        self._ballast = os.path.join(root, "ballast")

    def steps(self):
        return folder.steps(self.path)

    def note(self):
        self.before = self.steps()

    def is_being_written(self):
        return bool(folder.unfinished(self.path))

    def fill(self, rest):
        """Fills the disk but for `rest` bytes."""
        stat = os.statvfs(self.root)
        with open(self._ballast, "wb", buffering=0) as file:
            with contextlib.suppress(OSError):
                file.write(bytes(max(0, stat.f_bavail * stat.f_frsize - rest)))
                while not rest:  # also space that was freed meanwhile
                    file.write(bytes(4096))

    def make_room(self):
        with contextlib.suppress(FileNotFoundError):
            os.remove(self._ballast)

    def check(self, clean):
        """Raises Wrong if the folder has errors. `clean`: the last run was able
        to remove what is unfinished."""
        problems = folder.problems(self.path, self.before, self.keep)
        if clean:
            problems += ["left behind: %s" % name
                         for name in folder.unfinished(self.path)]
            # A kill between a commit and the removal of the oldest checkpoint
            # leaves one too many until the next save.
            if len(self.steps()) > self.keep + 1:
                problems.append("keep = %d, and there are %s" % (
                    self.keep, self.steps()))
        if problems:
            raise Wrong("; ".join(problems))


class Trial:

    def __init__(self, trainer, machine, root, seed, number, deadline_s):
        self._trainer, self._machine, self._root = trainer, machine, root
        self._deadline_s = deadline_s
        self._rng = random.Random("%d/%d" % (seed, number))
        self.job = jobs.draw(self._rng)
        names = list(faults.FAULTS)
        if not machine.disks:
            names.remove("full disk")
        if not machine.bound:
            names.remove("thread limit")
        self.faults = [self._rng.choice(names)
                       for _ in range(self._rng.randint(1, FAULTS_MAX))]
        self._runs = []

    def __str__(self):
        return "%s; %s" % (self.job, ", ".join(self.faults))

    def run(self):
        """Returns [(fault, outcome of a run)]."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._close)
            disk = Disk(os.path.join(self._root, "disk"), self.job.keep,
                        self._deadline_s)
            self._machine.make_folder(disk.root)
            if "full disk" in self.faults:
                size = (2 * self.job.keep + 4) * self.job.checkpoint_bytes()
                stack.enter_context(self._machine.disk(disk.root, size))
            whole = self._whole_run(os.path.join(disk.root, "whole"))
            outcomes = []
            for name in self.faults:
                outcomes += self._strike(name, disk, whole)
            self._finish(disk, whole)
            return outcomes

    def said(self):
        """Returns the output of the last runs of the round."""
        return "".join("  $ %s\n%s%s" % (
            " ".join(run.command), run.out(), run.err())
                       for run in self._runs[-2:])

    def _start(self, path, limits=None):
        run = Program([self._trainer, *self.job.options(path)], self._root,
                      limits, self._machine.uid)
        self._runs.append(run)
        return run

    def _close(self):
        for run in self._runs:
            run.close()

    def _complete(self, path):
        """Runs to the end. Returns the last evaluation, as printed, and the
        seconds of training."""
        run = self._start(path)
        faults.outcome(run, run.end(self._deadline_s), (faults.OK,))
        seconds = re.search(r"^done: .* in ([\d.]+) s", run.out(), re.M)
        return (re.search(r"^test accuracy: .*$", run.out(), re.M).group(0),
                float(seconds.group(1)) if seconds else 0)

    def _whole_run(self, path):
        """Runs the job undisturbed on the same disk. Returns (evaluation,
        folder, (seconds until the first step, seconds from there))."""
        start = time.monotonic()
        evaluation, train_s = self._complete(path)
        start_s = max(0, time.monotonic() - start - train_s)
        return evaluation, path, (start_s, train_s)

    def _strike(self, name, disk, whole):
        fault, right, errors = faults.FAULTS[name]
        strike = faults.Strike(
            self._rng, lambda limits=None: self._start(disk.path, limits),
            self.job, self._machine, whole[2], disk)
        runs = fault(strike)
        found = [(name, faults.outcome(run, run.end(self._deadline_s), right,
                                       errors)) for run in runs]
        words = [word for _, word in found]
        if len(runs) == 2 and "complete" not in words:
            raise Wrong("of two runs in a folder none went on")
        disk.make_room()
        disk.check(clean=words[0] in ("complete", "stopped and saved"))
        return found

    def _finish(self, disk, whole):
        evaluation, path, _ = whole
        disk.note()
        end, _ = self._complete(disk.path)
        disk.check(clean=True)
        if end != evaluation:
            raise Wrong("it ends at %s, undisturbed at %s" % (end, evaluation))
        differences = folder.differences(
            folder.checkpoint(disk.path, self.job.steps),
            folder.checkpoint(path, self.job.steps))
        if differences:
            raise Wrong("; ".join(differences))
