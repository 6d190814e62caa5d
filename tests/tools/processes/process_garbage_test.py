"""Whoever comes to the ports of a job, with whatever it sends: the job goes on,
and ends at the bits of a run that nobody disturbed. Without TLS one thing ends
it (docs/caf.md), in order."""

import os
import random
import re
import signal
import sys
import unittest

sys.path.insert(0, os.path.join("tests", "tools", "processes"))

from process_case import (  # pylint: disable=wrong-import-position
    END_S, ProcessCase, TRAINER, layout)
from chaos import folder, processes  # pylint: disable=wrong-import-position
# pylint: disable-next=wrong-import-position
from chaos.garbage import CAF_HEADER, CAF_HEADER_KIND, Garbage

SEED = 1
TRIES = 5
WAIT_S = 0.2
STEPS = 200  # to go on for while it is disturbed


class GarbageCase(ProcessCase):

    def goes_on_and_stops(self, job, path):
        """Ctrl-C, after some more steps."""
        steps = re.findall(r"^step (\d+)/", job[0].out(), re.M)
        self.wait_step(job, int(steps[-1] if steps else 0) + STEPS)
        job[0].signal(signal.SIGINT)
        self.assertEqual(set(job.end(END_S).values()), {3}, job.said())
        for run in job.runs.values():
            self.assertEqual(run.err(), "")
        self.same_bits(os.path.basename(path), layout(job.count, False),
                       folder.steps(path)[-1], path)

    def while_they_connect(self):
        """Garbage in the ports for data, while it is waited for there."""
        # Process 2 has joined and stands still, so the others wait for it at
        # their ports for data. Where it stopped too early, none is welcome yet.
        for attempt in range(TRIES):
            path = self.path("saved-%d" % attempt)
            job = self.make_job(3, checkpoint__dir=path, comm__transport="tcp",
                                comm__liveness_s=60)
            job.start(0)
            job.start(2)
            self.wait_until(job[2], lambda j=job: processes.is_connected_to(
                j[2].pid, j.port))
            job[2].wait(WAIT_S)
            job[2].signal(signal.SIGSTOP)
            job.start(1)
            ports = self.data_ports(job)
            if ports:
                break
            job.signal(signal.SIGKILL)
            job.end(END_S)
        self.assertTrue(ports, job.said())
        with Garbage(random.Random(SEED), ports) as garbage:
            garbage.throw_all()
            job[2].signal(signal.SIGCONT)
            self.goes_on_and_stops(job, path)

    @staticmethod
    def data_ports(job):
        """Those that are open soon."""
        for _ in range(int(10 / WAIT_S)):
            ports = [port for run in job.runs.values()
                     for port in processes.listening_ports(run.pid)
                     if port != job.port]
            if ports:
                return ports
            job[0].wait(WAIT_S)
        return []


class ProcessGarbageTest(GarbageCase):

    def test_while_it_trains(self):
        for transport in ("shm", "tcp"):
            with self.subTest(transport=transport):
                path = self.path(transport)
                job = self.start_job(2, checkpoint__dir=path,
                                     comm__transport=transport)
                self.wait_step(job, 5)
                ports = [port for run in job.runs.values()
                         for port in processes.listening_ports(run.pid)]
                self.assertIn(job.port, ports)
                with Garbage(random.Random(SEED), ports) as garbage:
                    garbage.throw_all()
                    self.goes_on_and_stops(job, path)

    def test_a_stranger_while_it_trains(self):
        path = self.path("saved")
        job = self.start_job(2, checkpoint__dir=path)
        self.wait_step(job, 5)
        other = processes.make_certificates(TRAINER, self.root, "other")
        right, job.runs = job.runs, {}
        # Of another authority; of ours, with a number that is taken.
        for certs, code in ((other, 1), (self.certs, 2)):
            run = job.start(1, certs=certs)
            self.assertEqual(run.end(END_S), code, job.said())
            self.assertRegex(run.err(), r"^trainer: .*\n$")
        job.runs = right
        self.goes_on_and_stops(job, path)

    def test_while_others_join(self):
        path = self.path("saved")
        job = self.make_job(2, checkpoint__dir=path)
        job.start(0)
        self.wait_until(job[0], lambda: job.port in processes.listening_ports(
            job[0].pid))
        with Garbage(random.Random(SEED), [job.port]) as garbage:
            garbage.throw_all()
            job.start(1)
            self.goes_on_and_stops(job, path)

    def test_while_they_connect(self):
        self.while_they_connect()


class InsecureProcesses(processes.Processes):

    def start(self, number, *words, **where):
        return super().start(number, "--insecure-network", *words,
                             **dict(where, certs=""))


class InsecureGarbageTest(GarbageCase):
    """Without TLS."""

    Job = InsecureProcesses

    def test_while_they_connect(self):
        self.while_they_connect()

    def test_at_the_control_plane(self):
        path = self.path("saved")
        job = self.start_job(2, checkpoint__dir=path)
        self.wait_step(job, 5)
        with Garbage(random.Random(SEED), [job.port],
                     without=[CAF_HEADER_KIND]) as garbage:
            garbage.throw_all()
            self.goes_on_and_stops(job, path)

    def test_what_ends_process_0_ends_all_in_order(self):
        path = self.path("saved")
        job = self.start_job(2, checkpoint__dir=path, checkpoint__every=2)
        self.wait_step(job, 5)
        before = folder.steps(path)
        with Garbage(random.Random(SEED), [job.port]) as garbage:
            garbage.throw((CAF_HEADER_KIND, CAF_HEADER), job.port)
            self.survivors_end(job, [0], [
                r"^(rank \d+, \w+: )?%s is (lost|gone): " % self.name_of(job, 0)],
                "process 0 is told nonsense")
        # Its own end may take longer than theirs.
        self.assertNotEqual(job[0].end(END_S), 0)
        self.goes_on(job, "told-nonsense", layout(2, False), path, before)


if __name__ == "__main__":
    unittest.main()
