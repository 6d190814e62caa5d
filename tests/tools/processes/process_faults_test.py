"""What may happen to a process of a job but death: it stands still, its disk is
full, its certificate or its settings are not those of the others."""

import os
import re
import resource
import signal
import sys
import unittest

sys.path.insert(0, os.path.join("tests", "tools", "processes"))

from process_case import (  # pylint: disable=wrong-import-position
    END_S, HOST, ProcessCase, TRAINER, layout)
from chaos import folder, processes  # pylint: disable=wrong-import-position


class ProcessFaultsTest(ProcessCase):

    def test_one_stands_still(self):
        for count, number in ((2, 0), (2, 1), (3, 0), (3, 2)):
            with self.subTest(processes=count, stopped=number):
                job = self.start_job(count, comm__liveness_s=1)
                self.wait_step(job, 5)
                job[number].signal(signal.SIGSTOP)
                # Others may have nothing more to do than was granted.
                waits = self.root_is(job, number) + (
                    r"|no rank waits for another|was on its way" +
                    ("" if number else r"|not asked"))
                silent = (r"%s has given no sign of life for \d[\d.]*m?s: "
                          % self.name_of(job, number))
                self.survivors_end(job, [number], [silent],
                                   "stopped, process %d of %d" % (
                                       number, count),
                                   also=waits)
                # It hears what was said of it, or that the others are gone.
                job[number].signal(signal.SIGCONT)
                job[number].end(END_S)
                self.check_words(job, number, job[number],
                                 [silent, r" (is gone|(closed|reset) the connection)"])

    def test_a_short_stop_is_nothing(self):
        path = self.path("saved")
        job = self.start_job(2, checkpoint__dir=path, comm__liveness_s=5)
        self.wait_step(job, 5)
        for run in job.runs.values():
            run.signal(signal.SIGSTOP)
            run.wait(0.3)
            run.signal(signal.SIGCONT)
        step = int(self.wait_line(job[0], r"(?s).*^step (\d+)/").group(1))
        self.wait_line(job[0], r"^step %d/" % (step + 100))
        job[1].signal(signal.SIGINT)
        self.assertEqual(job.end(END_S), {0: 3, 1: 3}, job.said())
        self.same_bits("short", layout(2, False), folder.steps(path)[-1], path)

    def test_full_disk(self):
        for number in (0, 1):
            with self.subTest(process=number):
                path = self.path("full-%d" % number)
                job = self.start_job(
                    2, stages=True, checkpoint__dir=path, checkpoint__every=20)
                self.wait_until(job[0], lambda p=path: folder.steps(p))
                before = folder.steps(path)
                job[number].limit(resource.RLIMIT_FSIZE, 1000)
                self.survivors_end(job, [], [
                    r"cannot write .*: File too large; raise the limit"],
                    "no room for process %d" % number)
                self.goes_on(job, "full-%d" % number, layout(2, True), path,
                             before)

    def refused(self, job, patterns, code=1, **where):
        """Process 1 comes as `where` says and is refused; process 0 waits for
        another."""
        run = job.start(1, **where)
        run.end(END_S)
        self.check_words(job, 1, run, patterns, code)
        self.assertFalse(job[0].wait(0), job.said())

    def test_certificates(self):
        other = processes.make_certificates(TRAINER, self.root, "other")
        path = self.path("saved")
        job = self.make_job(2, steps=10, checkpoint__dir=path)
        job.start(0)
        self.wait_until(job[0], lambda: job.port in processes.listening_ports(
            job[0].pid))
        self.refused(job, [
            r"^process 0 at 127.0.0.1:\d+ and process 1 do not come to terms "
            r".*must be signed by one authority, here " + re.escape(other)],
            certs=other)
        self.refused(job, [r"this one has no certificate"], code=2, certs="")
        job.start(1)
        self.assertEqual(job.end(END_S), {0: 0, 1: 0}, job.said())
        self.same_bits("certificates", layout(2, False), 10, path)

    def all_say(self, job, patterns, code):
        for run in job.all_runs:
            run.end(END_S)
        for run in job.all_runs:
            self.check_words(job, 0, run, patterns, code)

    def test_two_with_one_number(self):
        job = self.make_job(3)
        for number in (0, 1, 1):
            job.start(number)
        pids = [run.pid for run in job.all_runs[1:]]
        each = r"process 1 \(%s, pid (%d|%d)\)" % (re.escape(HOST), *pids)
        self.all_say(job, ["^two processes come with number 1: %s and %s; give each its own$" % (
            each, each)], 2)

    def test_other_settings(self):
        job = self.make_job(3)
        job.start(0)
        job.start(1)
        job.start(2, "--set", "optimizer.lr=0.06")
        self.all_say(job, [
            r"^the processes of a job must agree, but optimizer.lr is "
            r"(0.05 in .*process [01] .* and 0.06 in process 2 \(|"
            r"0.06 in process 2 .* and 0.05 in process [01] \()"], 1)

    def test_other_numbers_of_processes(self):
        job = self.make_job(2)
        job.start(0)
        job.start(1, "--set", "mesh.dp=3", count=3)
        self.all_say(job, [
            r"^process 1 \(.*\) comes as one of 3 processes, and process 0 waits "
            r"for 2"], 2)

    def test_process_0_is_missing(self):
        job = self.make_job(2, comm__join_s=2)
        job.start(1)
        self.survivors_end(job, [], [
            r"^process 1 cannot reach process 0: 127.0.0.1:%d: " % job.port],
            "process 0 is missing (2 s)")

    def test_process_1_is_missing(self):
        job = self.make_job(2, comm__join_s=2)
        job.start(0)
        self.survivors_end(job, [], [r"^process 1 did not join within 2s; see the output there$"],
                           "process 1 is missing (2 s)")


if __name__ == "__main__":
    unittest.main()
