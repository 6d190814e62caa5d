"""A job whose tensors go by MPI, under mpirun: how it stops, and what becomes of
it when one of its processes dies or stands still."""

import os
import re
import signal
import sys

sys.path.insert(0, os.path.join("tests", "tools", "processes"))

# pylint: disable=wrong-import-position
import several_processes
from process_case import END_S, ProcessCase, TRAINER, layout
from chaos import folder, processes
from chaos.program import Program

# mpirun gives its programs a terminal.
MPI = {"comm.transport": "mpi", "comm.liveness_s": 1, "log.progress": "off"}
# mpirun has a paragraph or two for each way in which a program ends.
LINES_MAX = 60


def rank_of(pid):
    """Its number in MPI_COMM_WORLD."""
    with open("/proc/%d/environ" % pid, "rb") as file:
        return int(re.search(rb"\0OMPI_COMM_WORLD_RANK=(\d+)\0",
                             b"\0" + file.read()).group(1))


class MpiProcessesTest(ProcessCase):

    def setUp(self):
        super().setUp()
        self.mpirun = several_processes.mpirun_words()
        if not self.mpirun:
            print("skipped: no mpirun here", flush=True)
            self.skipTest("no mpirun here")

    def start(self, count, *mpirun_options, **settings):
        """mpirun, in mid-training, and the pid of each process."""
        settings = {key.replace("__", "."): value
                    for key, value in settings.items()}
        run = Program([
            *self.mpirun, *mpirun_options, "-n", str(count),
            *self.words(10**9, dict(layout(count, False), **MPI, **settings)),
            "--certs=" + self.certs], self.root)
        self.addCleanup(run.close)
        self.wait_line(run, r"^process 0 exchanges tensors with the others by "
                       r"mpi \(%d link" % (count - 1))
        self.wait_line(run, r"^step 5/")
        pids = {rank_of(pid): pid for pid in processes.children(run.pid)}
        self.assertEqual(sorted(pids), list(range(count)))
        return run, pids

    def ends(self, run, codes, what):
        self.assertIn(run.end(END_S), codes, run.out() + run.err())
        said = run.err().splitlines()
        self.assertLess(len(said), LINES_MAX, run.err())
        self.assertRegex(run.err(), re.compile(what, re.M))

    def test_a_stop_ends_mpi_in_order(self):
        path = self.path("saved")
        run, pids = self.start(2, checkpoint__dir=path)
        os.kill(pids[1], signal.SIGTERM)
        self.ends(run, (3,), "")
        # Neither says that one left without ending MPI.
        self.assertNotRegex(run.err(), "(?i)finalize|improper|abort was")
        self.same_bits("stopped", layout(2, False), folder.steps(path)[-1],
                       path)

    def kill(self, count, victim, *mpirun_options):
        """The run, and what survivors say of the victim."""
        run, pids = self.start(count, *mpirun_options)
        os.kill(pids[victim], signal.SIGKILL)
        return run, (r"^trainer: .*process %d \(.* pid %d\b.* is (lost|gone): "
                     % (victim, pids[victim]))

    def test_one_is_killed(self):
        for count, victim in ((2, 0), (3, 2)):
            with self.subTest(processes=count, victim=victim):
                run, words = self.kill(count, victim)
                # mpirun's code is that of whoever it hears of first. It kills
                # the others, who may not have said anything by then; it has.
                self.ends(run, (128 + signal.SIGKILL, 1),
                          r"%s|process rank %d with .* exited on signal %d\b"
                          % (words, victim, signal.SIGKILL))

    def test_survivors_name_who_was_killed(self):
        for count, victim in ((2, 0), (2, 1), (3, 2)):
            with self.subTest(processes=count, victim=victim):
                # It leaves the others alone, and finds nothing wrong at the end.
                run, words = self.kill(count, victim, "--enable-recovery")
                self.ends(run, (0,), words)

    def test_one_stands_still(self):
        for victim in (0, 1):
            with self.subTest(victim=victim):
                run, pids = self.start(2)
                os.kill(pids[victim], signal.SIGSTOP)
                self.ends(run, (1,),
                          r"^trainer: .*process %d \(.* pid %d\b.* has given "
                          r"no sign of life for " % (victim, pids[victim]))

    def test_other_numbers_than_those_of_mpi(self):
        words = self.words(10, dict(layout(2, False), **MPI))
        run = Program([
            *self.mpirun, "-n", "2", "sh", "-c",
            'OMPI_COMM_WORLD_RANK=$((1 - OMPI_COMM_WORLD_RANK)) exec "$@"',
            "sh", *words, "--certs=" + self.certs], self.root)
        self.addCleanup(run.close)
        self.ends(run, (1,),
                  r"^trainer: process (\d) of 2 is rank (?!\1)\d of 2 in "
                  r"MPI_COMM_WORLD; one mpirun must start all processes")

    def refused(self, words, why):
        run = Program([TRAINER, *words], self.root)
        self.addCleanup(run.close)
        self.assertEqual(run.end(END_S), 2, run.err())
        self.assertIn(why, run.err())

    def test_mpirun_must_have_started_it(self):
        train = self.words(10, dict(layout(2, False), **MPI))[1:]
        self.refused(
            ["launch", "--nproc-per-node=2", "--", *train],
            'comm.transport = "mpi", but this process was launched by trainer '
            'launch; write "mpirun -n 2 trainer train ..."')
        self.refused(
            [*train, "--process=1", "--processes=2", "--insecure-network",
             "--master=127.0.0.1:29400"],
            'comm.transport = "mpi", but this process was launched by hand')


if __name__ == "__main__":
    several_processes.main()
