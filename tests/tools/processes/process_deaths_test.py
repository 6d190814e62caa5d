"""kill -9 of any process of a job, in any phase: the others end soon, name it,
leave nothing, and the job goes on from its last checkpoint to the same bits."""

import os
import re
import signal
import sys
import unittest

sys.path.insert(0, os.path.join("tests", "tools", "processes"))

from process_case import (  # pylint: disable=wrong-import-position
    END_S, FOREVER, HOST, ProcessCase, TRAINER, layout)
from chaos import folder, processes  # pylint: disable=wrong-import-position
from chaos.program import Program  # pylint: disable=wrong-import-position

VICTIMS = ((2, 0), (2, 1), (3, 0), (3, 2))  # of how many, which


class ProcessDeathsTest(ProcessCase):

    def test_while_others_join(self):
        # Of three the last never comes.
        for victim in (0, 1):
            with self.subTest(victim=victim):
                job = self.make_job(3, comm__join_s=2)
                job.start(0)
                job.start(1)
                self.wait_until(job[1], lambda j=job: processes.is_connected_to(
                    j[1].pid, j.port))
                # It may not have been asked who it is.
                self.kill(job, victim, "joining, process %d of 3" % victim, [
                    r"process %d \(%s, pid %d" % (
                        victim, re.escape(HOST), job[victim].pid),
                    r"process 0 \(127\.0\.0\.1:\d+\) is gone: ",
                    r"^process 1, process 2 did not join within 2s; see the output there$",
                    r"process 1 cannot reach process 0: ",
                    r"process 0 at 127.0.0.1:\d+"])

    def strike(self, phase, moment, stages=False, saves=False, **settings):
        """`moment(job, path)` waits for it. `saves`: before it, too."""
        for count, victim in VICTIMS:
            with self.subTest(phase=phase, victim=victim, processes=count):
                name = "%s-%d-%d" % (phase.replace(" ", "-"), count, victim)
                path = self.path(name)
                job = self.start_job(count, stages=stages, checkpoint__dir=path,
                                     checkpoint__every=2, **settings)
                moment(job, path)
                before = folder.steps(path)
                self.kill(job, victim, "%s, process %d of %d" % (
                    phase, victim, count))
                if saves:
                    self.goes_on(job, name, layout(count, stages), path, before)

    def test_before_the_first_step(self):
        self.strike("first step", lambda job, _: self.wait_line(
            job[0], r"^training "))

    def test_all_reduce(self):
        self.strike("all-reduce", lambda job, _: self.wait_step(job, 5),
                    saves=True)

    def test_all_reduce_by_tcp(self):
        self.strike("all-reduce by tcp", lambda job, _: self.wait_step(job, 5),
                    comm__transport="tcp")

    def who_waits(self, what, **settings):
        """The last words name what everybody waited for, and for whom; where
        the others had nothing to do just then, they say so."""
        for count, victim in VICTIMS:
            for attempt in range(5):
                job = self.start_job(count, **settings)
                self.wait_step(job, 5)
                waits = self.waits_for(job, victim)
                # Without process 0 each knows its own ranks only.
                other = r"elsewhere, and not asked" if victim == 0 else waits
                self.kill(job, victim, "%s, process %d of %d, attempt %d" % (
                    what, victim, count, attempt), also=(
                        r"; no rank waits for another; |was on its way|%s|%s" % (
                            self.root_is(job, victim), other)))
                said = [run.err() for number, run in job.runs.items()
                        if number != victim]
                if victim != 0:  # the supervisor says it to all
                    self.assertEqual(len(set(said)), 1, said)
                told = [re.search(waits, words) for words in said]
                if any(told) if victim == 0 else all(told):
                    break
            else:
                self.fail("nobody waits for process %d: %s" % (victim, said))

    def test_who_waits_in_all_reduce(self):
        self.who_waits("who waits")

    def test_who_waits_between_stages(self):
        self.who_waits("who waits between stages", stages=True)

    def test_between_stages(self):
        self.strike("between stages", lambda job, _: self.wait_step(job, 5),
                    stages=True, saves=True)

    def test_checkpoint(self):
        def moment(job, path):
            self.wait_until(job[0], lambda: any(
                step > 2 for step in folder.steps(path)))
            self.wait_until(job[0], lambda: folder.unfinished(path))
        self.strike("checkpoint", moment, stages=True, saves=True)

    def test_evaluation(self):
        # Longer than it takes to find out that it has begun.
        self.strike("evaluation", lambda job, _: self.wait_step(job, 3),
                    train__eval_every=3, data__test_count=200000,
                    model__widths=256)

    def launch(self, path):
        words = self.words(FOREVER, dict(
            layout(2, False), **{"checkpoint.dir": path,
                                 "checkpoint.every": 2}))
        run = Program([TRAINER, "launch", "--nproc-per-node=2", "--",
                       *words[1:]], self.root)
        self.addCleanup(run.close)
        self.wait_line(run, r"^step 5/")
        return run

    def test_launched(self):
        for victim in (0, 1):
            with self.subTest(victim=victim):
                run = self.launch(self.path("launched-%d" % victim))
                pid = processes.children(run.pid)[victim]
                os.kill(pid, signal.SIGKILL)
                self.assertEqual(run.end(END_S), 128 + signal.SIGKILL)
                self.assertRegex(run.err().splitlines()[-1], (
                    r"^trainer: process %d \(pid %d\) was killed by SIGKILL"
                    % (victim, pid)))
                self.assertEqual(processes.left_behind(self.mark), [])

    def test_launcher(self):
        run = self.launch(self.path("launcher"))
        pids = [os.pidfd_open(pid) for pid in processes.children(run.pid)]
        run.signal(signal.SIGKILL)
        for pid in pids:
            processes.wait_end(pid, END_S)
            os.close(pid)
        self.assertEqual(run.end(END_S), -signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
