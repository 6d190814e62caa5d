"""A network that fails between the hosts of a job: each side ends in time and
says whom it hears no more; a short failure is none."""

import os
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join("tests", "tools", "processes"))

from process_case import (  # pylint: disable=wrong-import-position
    END_S, ProcessCase, TRAINER, layout)
from chaos import folder, processes  # pylint: disable=wrong-import-position
from chaos.program import Program  # pylint: disable=wrong-import-position

LIVENESS_S = 1
PORT = 29400


def host_words(host):
    return os.environ["HOST%d" % host].split()


class HostProcesses(processes.Processes):
    """Each process on a host of its own."""

    @property
    def port(self):
        return PORT  # all hosts are ours

    def host(self, number):
        return host_words(number), os.environ["ADDRESS%d" % number]


def switch(*words):
    subprocess.run([*os.environ["SWITCH"].split(), "ip", "link", "set", *words],
                   check=True)


class Cable:
    """That of a host, pulled out: its interface sees that."""

    @staticmethod
    def cut(host):
        switch("host%d" % host, "down")

    @staticmethod
    def heal(host):
        switch("host%d" % host, "up")


class Switch:
    """What it has for a host goes nowhere, nor what the host sends: no
    interface sees that."""

    @staticmethod
    def cut(host):
        switch("host%d" % host, "nomaster")

    @staticmethod
    def heal(host):
        switch("host%d" % host, "master", "bridge0")


class NetworkFaultsTest(ProcessCase):

    Job = HostProcesses

    def cut(self, fault, host):
        fault.cut(host)
        self.addCleanup(fault.heal, host)

    def silent(self, job, number):
        return (r"^(rank \d+, \w+: )?%s has given no sign of life for "
                % self.name_of(job, number))

    def both_sides_end(self, fault, count, host, **settings):
        """The host is cut off while they train."""
        job = self.start_job(count, comm__liveness_s=LIVENESS_S, **settings)
        self.wait_step(job, 5)
        self.cut(fault, host)
        start = time.monotonic()
        for run in job.runs.values():
            run.end(END_S)
        took = time.monotonic() - start
        print("%-40s %7.0f ms" % ("%s: host %d of %d cut off" % (
            fault.__name__, host, count), took * 1e3), flush=True)
        # Not before the time-out, and soon after it.
        self.assertGreater(took, LIVENESS_S / 2)
        self.assertLess(took, END_S)
        for number, run in job.runs.items():
            # Process 0 watches all, and all watch process 0.
            others = [other for other in job.runs
                      if (other == host) != (number == host)]
            blamed = others if number == 0 else (
                [0] if 0 in others else [host])
            self.check_words(job, number, run, [
                self.silent(job, other) for other in blamed])
        fault.heal(host)

    def test_a_cable_is_cut(self):
        for count, host in ((2, 0), (2, 1), (3, 0), (3, 2)):
            with self.subTest(hosts=count, cut=host):
                self.both_sides_end(Cable, count, host)

    def test_packets_go_nowhere(self):
        for count, host in ((2, 1), (3, 0)):
            with self.subTest(hosts=count, cut=host):
                self.both_sides_end(Switch, count, host)

    def test_while_stages_exchange_encrypted_tensors(self):
        self.both_sides_end(Switch, 2, 1, stages=True, comm__encrypt="true")

    def test_a_short_cut_is_nothing(self):
        for fault in (Cable, Switch):
            with self.subTest(fault.__name__):
                path = self.path(fault.__name__)
                job = self.start_job(2, checkpoint__dir=path,
                                     comm__liveness_s=20)
                self.wait_step(job, 5)
                self.cut(fault, 1)
                # Until both wait for each other.
                self.wait_until(job[0], lambda j=job: self.stands_still(j))
                fault.heal(1)
                step = int(re.findall(r"^step (\d+)/", job[0].out(),
                                      re.M)[-1])
                self.wait_step(job, step + 100)
                job[1].signal(signal.SIGINT)
                self.assertEqual(job.end(END_S), {0: 3, 1: 3}, job.said())
                self.same_bits(fault.__name__, layout(2, False),
                               folder.steps(path)[-1], path)

    @staticmethod
    def stands_still(job):
        """Whether it prints nothing more for a while, in which it would take
        many steps."""
        before = job[0].out()
        job[0].wait(0.3)
        return job[0].out() == before

    def test_launched(self):
        words = self.words(10**9, dict(
            layout(2, False), **{"comm.liveness_s": LIVENESS_S}))
        runs = []
        for host in (0, 1):
            run = Program([
                *host_words(host), TRAINER, "launch", "--nnodes=2",
                "--node-rank=%d" % host, "--nproc-per-node=1",
                "--master=%s:%d" % (os.environ["ADDRESS0"], PORT),
                "--certs=" + self.certs, "--", *words[1:]], self.root)
            self.addCleanup(run.close)
            runs.append(run)
        self.wait_line(runs[0], r"^step 5/")
        self.cut(Cable, 1)
        for host, run in enumerate(runs):
            self.assertEqual(run.end(END_S), 1, run.err())
            self.assertRegex(run.err(), r"trainer: (rank \d+, \w+: )?process "
                             r"%d \(.* has given no sign of life" % (1 - host))
        self.assertEqual(processes.left_behind(self.mark), [])


if __name__ == "__main__":
    unittest.main()
