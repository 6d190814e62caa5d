"""What tools/chaos looks for, it finds: planted damage, wrong ends, a hang, and
a trainer that does not go on from its checkpoint to the same bits."""

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join("tools", "lib"))

from chaos import (  # pylint: disable=wrong-import-position
    faults, folder, process_faults)
from chaos.program import Hang, Program  # pylint: disable=wrong-import-position

DEADLINE_S = 60


def tensors(values):
    data = struct.pack("<%df" % len(values), *values)
    header = json.dumps({"w": {"dtype": "F32", "shape": [len(values)],
                               "data_offsets": [0, len(data)]}}).encode()
    return struct.pack("<Q", len(header)) + header + data


class FakeRun:
    """A process of which only this is known."""

    def __init__(self, pid, err=""):
        self.pid, self._err = pid, err

    def err(self):
        return self._err

    def out(self):
        return ""


class FakeStrike:
    """Process 1 of two was struck."""

    early = False
    number = 1
    name = process_faults.Strike.name

    def __init__(self, said_by_0):
        self.job = {0: FakeRun(10, said_by_0), 1: FakeRun(11)}
        self.victim = self.job[1]


class ProcessVerdictTest(unittest.TestCase):

    def verdict(self, said, codes, fault="kill -9"):
        return process_faults.verdict(FakeStrike(said), fault, codes)

    def says(self, number, pid):
        return "trainer: process %d (%s, pid %d, rank 1) is lost: why\n" % (
            number, process_faults.HOST, pid)

    def test_the_right_one_is_named(self):
        self.assertEqual(self.verdict(self.says(1, 11), {0: 1, 1: -9}),
                         "failed, and said why")

    def test_another_is_named(self):
        for said in (self.says(1, 12), self.says(0, 11), "",
                     self.says(1, 11) * 2):
            with self.subTest(said=said), self.assertRaises(faults.Wrong):
                self.verdict(said, {0: 1, 1: -9})

    def test_wrong_codes(self):
        for codes in ({0: 3, 1: -9}, {0: -11, 1: -9}, {0: 1, 1: 139}):
            with self.subTest(codes=codes), self.assertRaises(faults.Wrong):
                self.verdict(self.says(1, 11), codes)

    def test_a_short_stop_ends_nothing(self):
        with self.assertRaises(faults.Wrong):
            self.verdict(self.says(1, 11), {0: 1, 1: 1}, "short stop")


class ChaosTest(unittest.TestCase):

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = temporary.name

    def write(self, name, content):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def checkpoint(self, step, values=(1.0, 2.0)):
        name = "step-%08d" % step
        self.write(name + "/model.safetensors", tensors(values))
        self.write(name + "/optimizer.safetensors", tensors(values))
        index = {"metadata": {"shards": 1},
                 "weight_map": {"w": "model.safetensors"}}
        for file, content in ((folder.FILES[0], index),
                              (folder.FILES[1], {"step": step}),
                              (folder.FILES[2], {})):
            self.write(name + "/" + file, json.dumps(content).encode())
        return os.path.join(self.root, name)

    def problems(self, before, keep):
        return "; ".join(folder.problems(self.root, before, keep))

    def test_a_good_folder(self):
        for step in (3, 4):
            self.checkpoint(step)
        self.assertEqual(self.problems([1, 3, 4], keep=2), "")

    def test_a_checkpoint_that_is_lost(self):
        self.checkpoint(4)
        self.assertEqual(self.problems([3, 4], keep=1), "")
        self.assertIn("step 3 was committed and is lost",
                      self.problems([3, 4], keep=2))
        self.assertIn("step 5 was committed and is lost",
                      self.problems([5], keep=1))

    def test_a_checkpoint_that_is_damaged(self):
        path = self.checkpoint(4)
        model = os.path.join(path, "model.safetensors")
        os.truncate(model, os.path.getsize(model) - 1)
        self.assertIn("its length", self.problems([4], keep=1))
        os.truncate(model, 4)
        self.assertIn("error", self.problems([4], keep=1))
        os.remove(model)
        self.assertIn("files of tensors", self.problems([4], keep=1))

    def test_a_lock_that_is_held(self):
        with open(self.write(folder.LOCK, b""), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertIn("is still held", self.problems([], keep=1))

    def test_a_bit_that_differs(self):
        a = self.checkpoint(4)
        self.assertEqual(folder.differences(a, a), [])
        b = self.checkpoint(5, values=(1.0, 2.0000002))
        self.assertEqual(len(folder.differences(a, b)), 2)

    def run_of(self, script):
        run = Program(["bash", "-c", script], self.root)
        self.addCleanup(run.close)
        return run

    def outcome(self, script, right, errors=()):
        run = self.run_of(script)
        return faults.outcome(run, run.end(DEADLINE_S), right, errors)

    def test_ends_that_are_right(self):
        self.assertEqual(
            self.outcome("echo trainer: no >&2; exit 1", (1,), ("no",)),
            "failed, and said why")
        self.assertEqual(self.outcome("echo stopped; exit 3", (3,)),
                         "stopped and saved")
        # It has touched nothing, not even what another one left.
        self.assertEqual(
            self.outcome("echo stopped before the first step; exit 3", (3,)),
            "before the start")
        self.assertEqual(self.outcome("kill -9 $$", (-signal.SIGKILL,)),
                         "killed")
        self.assertEqual(self.outcome("kill -TERM $$", (signal.SIGTERM,)),
                         "before the start")
        self.assertEqual(
            self.outcome("echo 'to go on: b'; kill -INT $$", (signal.SIGINT,)),
            "after the end")

    def test_ends_that_are_wrong(self):
        for script, right, why in (
                ("exit 7", (0, 1), "exit code 7"),
                ("exit 1", (0, 1), "without one line"),
                ("echo 'trainer: a' >&2; echo b >&2; exit 1", (1,),
                 "without one line"),
                ("echo trainer: yes >&2; exit 1", (1,), "another error"),
                ("exit 0", (0,), "not evaluated"),
                ("echo oh >&2; echo stopped; exit 3", (3,), "complains"),
                ("exit 3", (3,), "does not say that it stopped"),
                ("kill -SEGV $$", (0, 1), "signal 11"),
                ("echo began; kill -TERM $$", (signal.SIGTERM,),
                 "signal 15")):
            with self.subTest(script=script):
                with self.assertRaisesRegex(faults.Wrong, why):
                    self.outcome(script, right, ("no",))

    def test_a_hang_shows_its_stacks(self):
        run = self.run_of("echo here; read -r <> <(:)")
        self.assertTrue(run.wait_until(lambda: "here" in run.out(),
                                       DEADLINE_S))
        with self.assertRaisesRegex(Hang, "hangs for 0 s(.|\n)*here(.|\n)*"
                                    "(Thread 1|comm: bash)"):
            run.end(0)

    def test_a_trainer_that_goes_on_to_other_bits(self):
        trainer = self.write("trainer", b"""#!/bin/bash
[[ $* != */disk/saved* ]] || more=(--set optimizer.lr=0.02)
exec '%s' "$@" "${more[@]}"
""" % os.path.abspath("tools/trainer").encode())
        os.chmod(trainer, 0o755)
        done = subprocess.run(
            [sys.executable, "tools/chaos", "--seed=1", "--round=5",
             "--trainer=" + trainer],
            env=dict(os.environ, TMPDIR=self.root), capture_output=True,
            text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stdout, "FAILED: round 5: ")
        self.assertRegex(done.stdout, "it ends at|is not that of")
        self.assertIn("tools/chaos --seed=1 --round=5", done.stdout)


if __name__ == "__main__":
    unittest.main()
