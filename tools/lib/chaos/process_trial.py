"""One round over several processes: a job, some faults in a row, each in one
process, and a last run without any. See trial.py.

    trial = ProcessTrial(trainer, machine, folder, seed, number, deadline_s,
                         processes=3)
    trial.run()                         # [(fault, outcome)]; Wrong otherwise
"""

import contextlib
import os
import random
import re

from chaos import faults, folder, process_faults, process_jobs, processes
from chaos.faults import Wrong
from chaos.program import Program
from chaos.trial import Disk, FAULTS_MAX


class ProcessTrial:

    def __init__(self, trainer, machine, root, seed, number, deadline_s, most):
        self._trainer, self._machine, self._root = trainer, machine, root
        self._deadline_s = deadline_s
        self._rng = random.Random("%d/%d" % (seed, number))
        self.job = process_jobs.draw(self._rng, self._rng.randint(2, most))
        names = list(process_faults.FAULTS)
        if not machine.disks:
            names.remove("full disk")
        self.faults = [self._rng.choice(names)
                       for _ in range(self._rng.randint(1, FAULTS_MAX))]
        self._mark = "%d/%d/%d" % (os.getpid(), seed, number)
        self._certs = None
        self._runs = []

    def __str__(self):
        return "%s; %s" % (self.job, ", ".join(self.faults))

    def run(self):
        """Returns [(fault, outcome of the job)]."""
        os.environ[processes.MARK] = self._mark
        with contextlib.ExitStack() as stack:
            stack.callback(self._close)
            disk = Disk(os.path.join(self._root, "disk"), self.job.keep,
                        self._deadline_s)
            self._machine.make_folder(disk.root)
            if "full disk" in self.faults:
                size = (2 * self.job.keep + 4) * self.job.checkpoint_bytes()
                stack.enter_context(self._machine.disk(disk.root, size))
            self._certs = processes.make_certificates(
                self._trainer, self._root, uid=self._machine.uid)
            whole = os.path.join(disk.root, "whole")
            evaluation = self._one_process(whole)
            outcomes = [(name, self._strike(name, disk))
                        for name in self.faults]
            self._finish(disk, whole, evaluation)
            return outcomes

    def said(self):
        return "".join(job.said() for job in self._runs[-2:])

    def _close(self):
        for job in self._runs:
            job.close()

    def _one_process(self, path):
        """Runs the job undisturbed in one process; returns its evaluation."""
        run = Program([self._trainer, *self.job.options(path)], self._root,
                      uid=self._machine.uid)
        try:
            faults.outcome(run, run.end(self._deadline_s), (faults.OK,))
            return self._evaluation(run)
        finally:
            run.close()

    @staticmethod
    def _evaluation(run):
        return re.search(r"^test accuracy: .*$", run.out(), re.M).group(0)

    def _start(self, path):
        job = processes.Processes(
            [self._trainer, *self.job.options(path)], self._root, self._certs,
            self.job.processes, uid=self._machine.uid)
        self._runs.append(job)
        return job.start_all()

    def _strike(self, name, disk):
        job = self._start(disk.path)
        strike = process_faults.Strike(self._rng, job, self.job, disk,
                                       self._deadline_s)
        process_faults.FAULTS[name][0](strike)
        outcome = process_faults.verdict(strike, name,
                                         job.end(self._deadline_s))
        disk.make_room()
        disk.check(clean=outcome in ("complete", "stopped and saved"))
        self._nothing_is_left()
        return outcome

    def _nothing_is_left(self):
        left = processes.left_behind(self._mark)
        if left:
            raise Wrong("; ".join(left))

    def _finish(self, disk, whole, evaluation):
        disk.note()
        job = self._start(disk.path)
        codes = job.end(self._deadline_s)
        if set(codes.values()) != {faults.OK}:
            raise Wrong("the last run ends with %s" % codes)
        disk.check(clean=True)
        self._nothing_is_left()
        end = self._evaluation(job[0])
        if end != evaluation:
            raise Wrong("it ends at %s, in one process at %s" % (
                end, evaluation))
        differences = folder.differences(
            folder.checkpoint(disk.path, self.job.steps),
            folder.checkpoint(whole, self.job.steps))
        if differences:
            raise Wrong("; ".join(differences))
