"""One short training, started in many ways, and the bits that it leaves.

    class SomeTest(several_processes.TrainingTest):
        def test_launch(self):
            path = self.train([TRAINER, "launch", "--nproc-per-node=2", "--",
                               "train"], ["--set", "comm.transport=tcp"])
            self.assert_same_bits(path, self.train([TRAINER, "train"], []))

What the words in front of `train` start takes the options behind them, and
those of JOB. What a machine has not is looked for by find(): the test skips
itself, and says what is missing.
"""

import os
import shutil
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

sys.path.insert(0, os.path.join("tools", "lib"))

from chaos import folder  # pylint: disable=wrong-import-position
from chaos.program import Program  # pylint: disable=wrong-import-position

TRAINER = os.path.abspath("tools/trainer")
NETWORK_HOSTS = os.path.abspath("tools/network/network_hosts")
CANNOT_MAKE_HOSTS = 77  # its exit code
STEPS = 3
DEADLINE_S = 60

# So that it starts on this machine alone, without asking who else runs.
MPIRUN = ("--oversubscribe", "--bind-to", "none",
          "--mca", "oob_tcp_if_include", "lo",
          "--mca", "btl_tcp_if_include", "lo")


def find_program(program, also_in=None):
    """Where it is: in PATH, or in a folder that may be given; or None.

    Without links: mpirun takes the folder above its own for that of all of
    Open MPI, and /bin/mpirun would lie in /.
    """
    places = [os.environ.get("PATH", ""), "/usr/sbin"]
    if also_in:
        places.insert(0, also_in)
    found = shutil.which(program, path=os.pathsep.join(places))
    return os.path.realpath(found) if found else None


def mpirun_words():
    """What starts programs by mpirun on this machine; None: it is not here."""
    found = find_program("mpirun")
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return [found, *root, *MPIRUN] if found else None


def options(**settings):
    """Settings of the trainer: train__steps=3 sets train.steps."""
    sets = [("--set", "%s=%s" % (key.replace("__", "."), value))
            for key, value in settings.items()]
    return [word for pair in sets for word in pair]


def mnist():
    """The folder of MNIST's files; None where there is none."""
    if "TROUPE_DATA" in os.environ:
        return os.path.join(os.environ["TROUPE_DATA"], "mnist")
    # Bazel links the configuration to the one in the source tree.
    above = os.path.realpath("examples/mnist/mnist.toml")
    while above != "/":
        above = os.path.dirname(above)
        if os.path.isdir(os.path.join(above, "shared/data/mnist")):
            return os.path.join(above, "shared/data/mnist")
    return None


def example():
    """examples/mnist where its digits are, else examples/glyphs."""
    path = mnist()
    name = "mnist" if path else "glyphs"
    config = os.path.abspath("examples/%s/%s.toml" % (name, name))
    return ["--config=" + config] + (
        options(data__path=path) if path else [])


JOB = example() + options(
    data__train_count=480, data__test_count=48, train__steps=STEPS,
    train__global_batch_size=48, comm__join_s=30, log__progress="off")


class TrainingTest(unittest.TestCase):

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = temporary.name

    def find(self, program, also_in=None):
        return find_program(program, also_in) or self.skip(
            "no %s here" % program)

    def mpirun(self, count):
        """The words that start a trainer by it, so many times."""
        words = mpirun_words() or self.skip("no mpirun here")
        return [*words, "-n", str(count), TRAINER, "train",
                self.certificates()]

    def skip(self, why):
        print("skipped: %s" % why, flush=True)
        self.skipTest(why)

    def start(self, command):
        program = Program(command, self.root)
        self.addCleanup(program.close)
        return program

    def output(self, command):
        """What it prints; it succeeds."""
        program = self.start(command)
        code = program.end(DEADLINE_S)
        printed = program.out() + program.err()
        self.assertEqual(code, 0, "%s\n%s" % (" ".join(command), printed))
        return printed

    def certificates(self):
        """--certs of all processes."""
        certs = os.path.join(self.root, "certs")
        if not os.path.exists(certs):
            self.output([TRAINER, "certs", "--dir=" + certs])
        return "--certs=" + os.path.join(certs, "node")

    def train(self, start, more=(), says="", path=None):
        """The checkpoint of a job that these words start, each process of which
        trains with `more` options. Its output has `says` in it. `path`: folder
        of its checkpoints; None: a new one."""
        path = path or tempfile.mkdtemp(dir=self.root)
        printed = self.output([*start, *JOB, *more,
                               *options(checkpoint__dir=path)])
        self.assertIn(says, printed)
        return folder.checkpoint(path, STEPS)

    def needs_hosts(self):
        """Skips where no hosts can be made."""
        self.find("ip")
        trial = self.start([NETWORK_HOSTS, "--hosts=2", "--", "true"])
        code = trial.end(DEADLINE_S)
        if code == CANNOT_MAKE_HOSTS:
            self.skip(trial.err().strip())
        self.assertEqual(code, 0, trial.out() + trial.err())

    def train_on_hosts(self, hosts, more=()):
        """The same by a process on each of these hosts, made of network
        namespaces."""
        self.needs_hosts()
        node = ("$HOST%d " + TRAINER + " launch --nnodes=%d --node-rank=%d "
                "--nproc-per-node=1 --master=$ADDRESS0:29400 " +
                self.certificates() + ' -- train "$@"')
        others = "".join("%s & others=\"$others $!\"; " % (
            node % (host, hosts, host)) for host in range(1, hosts))
        script = "%s%s || exit; for one in $others; do wait $one || exit; done"
        return self.train(
            [NETWORK_HOSTS, "--hosts=%d" % hosts, "--", "sh", "-c",
             script % (others, node % (0, hosts, 0)), "sh"], more)

    def assert_same_bits(self, path, other):
        self.assertEqual(folder.differences(path, other), [])


class Result(unittest.TextTestResult):
    """Keeps all cases, for Bazel: those that were skipped too."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.cases = xml.Element("testsuite")

    def startTest(self, test):
        super().startTest(test)
        self._case = xml.SubElement(
            self.cases, "testcase", name=test.id().split(".")[-1],
            classname=type(test).__name__)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        xml.SubElement(self._case, "skipped", message=reason)

    def stopTest(self, test):
        super().stopTest(test)
        for failed, text in self.failures + self.errors:
            # Of a subtest, the test around it.
            if getattr(failed, "test_case", failed) is test:
                xml.SubElement(self._case, "failure").text = text


def main():
    runner = unittest.TextTestRunner(verbosity=2, resultclass=Result)
    result = unittest.main(testRunner=runner, exit=False).result
    report = os.environ.get("XML_OUTPUT_FILE")
    if report:
        suites = xml.Element("testsuites")
        suites.append(result.cases)
        xml.ElementTree(suites).write(report)
    sys.exit(not result.wasSuccessful())
