"""For tests of jobs of several real processes: starts them, ends them, and
looks at what survivors say and what is left.

    class MyTest(ProcessCase):
        def test_it(self):
            job = self.start_job(2, steps=FOREVER)
            self.wait_step(job, 3)
            job[1].signal(signal.SIGKILL)
            self.survivors_name(job, job[1], 1)
"""

import os
import re
import signal
import socket
import sys
import tempfile
import time
import unittest
import uuid

sys.path.insert(0, os.path.join("tools", "lib"))

from chaos import folder, processes  # pylint: disable=wrong-import-position
from chaos.program import Program  # pylint: disable=wrong-import-position

TRAINER = os.path.abspath("tools/trainer")
DEADLINE_S = 60
END_S = 10  # of survivors; the job itself promises a tenth of it
KEEP = 2
FOREVER = 1000000000
HOST = socket.gethostname()


def options(settings):
    return [word for key, value in settings.items()
            for word in ("--set", "%s=%s" % (key, value))]


JOB = {
    "model.kind": "mlp", "model.widths": "64", "data.kind": "synthetic",
    "data.train_count": 256, "data.test_count": 32,
    "train.global_batch_size": 24, "optimizer.lr": 0.05,
    "optimizer.momentum": 0.9, "log.every": 1, "comm.join_s": 30,
    "checkpoint.keep": KEEP,
}
PIPELINE = {"train.micro_batch_size": 4}
CUTS = {2: "2", 3: "1,2"}


def layout(count, stages):
    """As many ranks as processes, with replicas or with stages."""
    if not stages:
        return {"mesh.dp": count}
    return dict(PIPELINE, **{"mesh.pp": count, "mesh.cuts": CUTS[count],
                             "mesh.dp": 1})


class ProcessCase(unittest.TestCase):

    Job = processes.Processes

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.shared = temporary.name
        cls.certs = processes.make_certificates(TRAINER, cls.shared)

    def setUp(self):
        self.root = os.path.join(self.shared, self.id().split(".")[-1])
        os.makedirs(os.path.join(self.root, "tmp"))
        # Inherited by all that is started: temporary files are seen, and so
        # are processes that nobody ended.
        self.mark = str(uuid.uuid4())
        os.environ[processes.MARK] = self.mark
        os.environ["TMPDIR"] = os.path.join(self.root, "tmp")
        self.shared_memory = set(folder.names("/dev/shm"))
        self.addCleanup(self.nothing_is_left)

    def nothing_is_left(self):
        self.assertEqual(processes.left_behind(self.mark), [])
        self.assertEqual(folder.names(os.path.join(self.root, "tmp")), [])
        mine = [name for name in folder.names("/dev/shm")
                if name not in self.shared_memory and "troupe" in name]
        self.assertEqual(mine, [])

    def path(self, name):
        return os.path.join(self.root, name)

    def words(self, steps, settings):
        return [TRAINER, "train",
                *options(dict(JOB, **{"train.steps": steps}, **settings))]

    def make_job(self, count, steps=FOREVER, limits=None, stages=False,
                 **settings):
        """Nothing has been started yet. Keys with "__" for the dot."""
        settings = {key.replace("__", "."): value
                    for key, value in settings.items()}
        job = self.Job(
            self.words(steps, dict(layout(count, stages), **settings)),
            self.root, self.certs, count, limits)
        self.addCleanup(job.close)
        return job

    def start_job(self, count, **settings):
        return self.make_job(count, **settings).start_all()

    def wait_line(self, run, pattern):
        found = run.wait_line(pattern, DEADLINE_S)
        self.assertTrue(found, "no %s in:\n%s%s" % (
            pattern, run.out(), run.err()))
        return found

    def wait_step(self, job, step):
        self.wait_line(job[0], r"^step %d/" % step)

    def wait_until(self, run, condition):
        self.assertTrue(run.wait_until(condition, DEADLINE_S),
                        "%s%s" % (run.out(), run.err()))

    def name_of(self, job, number):
        """The pattern of a process's name in messages."""
        return r"process %d \(%s, pid %d, ranks? [^)]*\)" % (
            number, re.escape(HOST), job[number].pid)

    def root_is(self, job, number):
        """The pattern of a wait graph whose root is the rank of that process.
        """
        return r"; the root of the wait is rank %d in %s, which is lost; " % (
            number, self.name_of(job, number))

    def waits_for(self, job, number):
        """The same, and first of all somebody waits for that rank."""
        return (r"%sranks? [\d, to]+ ha(s|ve) waited [\dms.]+ for ranks? "
                r"[\d, to]*\b%d in (step|batch) \d+"
                r"(,| of an evaluation:) (%s|%s)" % (
                    self.root_is(job, number), number,
                    r"(loss|bucket \d+): (all_reduce|reduce_update)"
                    r"\(\w+, f\d\d x \d+\), collective \d+ of group "
                    r"(all ranks|replicas( of stage \d)?)",
                    r"(micro-batch \d+: )?the (activation|gradient|credit) of "
                    r"stage \d for stage \d"))

    def check_words(self, job, number, run, patterns, code=1, also=r""):
        """`run` has failed with one line that matches one of the patterns, and
        `also`."""
        self.assertEqual(run.wait(0) and run.end(0), code, job.said())
        line = re.fullmatch(r"trainer: (.*)\n", run.err())
        self.assertTrue(line and any(re.search(pattern, line.group(1))
                                     for pattern in patterns),
                        "process %d says: %s; wanted: %s" % (
                            number, run.err(), patterns))
        self.assertTrue(re.search(also, line.group(1)), "process %d says: %s; "
                        "wanted: %s" % (number, run.err(), also))

    def survivors_end(self, job, gone, patterns, what, also=r""):
        """All but those end within END_S, and say one of the patterns, and
        `also`."""
        start = time.monotonic()
        survivors = {number: run for number, run in job.runs.items()
                     if number not in gone}
        for run in survivors.values():
            run.end(END_S)
        took = time.monotonic() - start
        print("%-40s %7.0f ms" % (what, took * 1e3), flush=True)
        self.assertLess(took, END_S)
        for number, run in survivors.items():
            self.check_words(job, number, run, patterns, also=also)

    def kill(self, job, number, what, patterns=(), also=r""):
        run = job[number]
        self.assertFalse(run.wait(0), job.said())
        run.signal(signal.SIGKILL)
        self.survivors_end(job, [number], patterns or [
            r"^(rank \d+, \w+: )?%s is (lost|gone): " % self.name_of(
                job, number)], what, also)
        self.assertEqual(run.end(END_S), -signal.SIGKILL)

    def one_process(self, *words):
        run = Program(list(words), self.root)
        try:
            self.assertEqual(run.end(DEADLINE_S), 0, run.err())
            return run.out()
        finally:
            run.close()

    def same_bits(self, name, settings, steps, trained):
        """The checkpoint at `steps` in the folder `trained` is that of one
        process that nothing happened to."""
        whole = self.path("whole-%s" % name)
        self.one_process(*self.words(steps, dict(
            settings, **{"checkpoint.dir": whole})))
        self.assertEqual(folder.differences(
            folder.checkpoint(trained, steps),
            folder.checkpoint(whole, steps)), [])

    def goes_on(self, job, name, settings, path, before):
        """What is there is whole; the same processes go on from it to the bits
        of a run that nothing happened to."""
        self.assertEqual(folder.problems(path, before, KEEP), [])
        steps = max(folder.steps(path), default=0) + 3
        again = processes.Processes(
            self.words(steps, dict(settings, **{"checkpoint.dir": path}))
            + ["--resume"], self.root, self.certs, job.count)
        self.addCleanup(again.close)
        codes = again.start_all().end(DEADLINE_S)
        self.assertEqual(set(codes.values()), {0}, again.said())
        self.assertEqual(folder.unfinished(path), [])
        self.same_bits(name, settings, steps, path)
