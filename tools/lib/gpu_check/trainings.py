"""Compares trainings on a GPU with the same on the CPU and on several ranks.

    for piece in pieces(bundle, mnist="data/mnist"):
        session.run(piece)

    accuracy     LeNet and an MLP on drawn digits (and MNIST, if its folder is
                 given): the accuracies of GPU and CPU differ by at most a
                 point, and both have learned
    weights      after some steps, 1, 2 and 4 ranks on one GPU, 2 stages, and 2
                 pieces of a GPT (mesh.tp) have the weights of one rank up to
                 rounding; a repeated run has the same bits; the GPU has the
                 CPU's weights within a wider bound
    graphs       if the trainer has CUDA graphs: the same bits with and without
"""

import array
import glob
import json
import os
import re
import shutil
import struct

from gpu_check.bundle import complaint
from gpu_check.session import FAILED, OK, SKIPPED, Piece, Result

ACCURACY_LIMIT_S = 60
WEIGHTS_LIMIT_S = 45
STEPS = 60
GPU = "cuda:0"
# Limits on the difference of weights of order one tenth, after STEPS steps.
RANKS_DIFFERENCE_MAX = 1e-5
CPU_DIFFERENCE_MAX = 1e-4
POINTS_MAX = 1.0  # limit on the points of accuracy between GPU and CPU

COMMON = ["log.progress=off", "optimizer.momentum=0.9", "optimizer.lr=0.02"]
DIGITS = ["data.kind=glyphs", "data.train_count=8192", "data.test_count=2048",
          "train.epochs=3"]
ACCURACY = {
    "lenet digits": ["model.kind=lenet"] + DIGITS,
    "mlp digits": ["model.kind=mlp", "model.widths=512,512"] + DIGITS,
}
LEARNED_PERCENT = 80.0
SHORT = ["model.kind=lenet", "data.kind=glyphs", "data.train_count=2048",
         "data.test_count=256", "train.steps=%d" % STEPS]
TEXT = ["model.kind=gpt_micro", "data.kind=text", "data.context=32",
        "data.val_fraction=0", "train.global_batch_size=8",
        "train.steps=%d" % (STEPS // 3)]


class Failure(Exception):
    """A run failed; the text says why."""


def train(bundle, settings, limit_s, name=None):
    """Runs a training; returns its output. With a name, it saves its weights,
    which weights() reads."""
    words = ["bin/trainer", "train"]
    for setting in COMMON + list(settings):
        words += ["--set", setting]
    if name is not None:
        folder = bundle.scratch_path(name)
        shutil.rmtree(folder, ignore_errors=True)
        words += ["--set", "checkpoint.dir=" + folder]
    outcome = bundle.run(words, limit_s)
    if outcome.code != 0 or outcome.timed_out:
        raise Failure(complaint(outcome, limit_s))
    return outcome.out


def accuracy_of(text):
    """Returns the last accuracy that the trainer printed, in percent."""
    found = re.findall(r"^test accuracy[^:\n]*: ([0-9.]+)%", text, re.MULTILINE)
    if not found:
        raise Failure("the trainer prints no accuracy")
    return float(found[-1])


def tensors(path):
    """Returns {name: numbers} of a safetensors file of f32."""
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    header.pop("__metadata__", None)
    found = {}
    for name, tensor in header.items():
        if tensor["dtype"] != "F32":
            raise Failure("%s of %s is no f32" % (name, path))
        begin, end = tensor["data_offsets"]
        found[name] = array.array("f", data[begin:end])
    return found


def weights(bundle, name):
    """Returns the weights of the run's last checkpoint, from all shards."""
    steps = sorted(glob.glob(bundle.scratch_path(name, "step-*")))
    found = {}
    for path in sorted(glob.glob(os.path.join(steps[-1], "model*.safetensors"))
                       if steps else []):
        found.update(tensors(path))
    if not found:
        raise Failure("run %s left no weights" % name)
    return found


def difference(a, b):
    """Returns the largest difference; infinite if names or lengths differ, or
    if there are NaNs."""
    if a.keys() != b.keys():
        return float("inf")
    largest = 0.0
    for name, numbers in a.items():
        if len(numbers) != len(b[name]):
            return float("inf")
        for x, y in zip(numbers, b[name]):
            gap = abs(x - y)
            if not gap <= largest:  # also true for NaN
                largest = gap if gap == gap else float("inf")
    return largest


def guarded(work):
    """Returns `work` with a Failure turned into a result."""
    def run(limit_s):
        try:
            return work(limit_s)
        except Failure as why:
            return Result(FAILED, str(why))
    return run


def compare_accuracy(bundle, settings, limit_s):
    percent = {}
    for device in ("cpu:0", GPU):
        percent[device] = accuracy_of(train(
            bundle, settings + ["train.device=" + device], limit_s / 2))
    words = "GPU %.2f%%, CPU %.2f%%" % (percent[GPU], percent["cpu:0"])
    details = {"gpu_percent": percent[GPU], "cpu_percent": percent["cpu:0"]}
    gap = abs(percent[GPU] - percent["cpu:0"])
    learned = min(percent.values()) >= LEARNED_PERCENT
    if gap > POINTS_MAX or not learned:
        return Result(FAILED, words + (
            ": more than %g apart" % POINTS_MAX if learned else
            ": less than %g%%" % LEARNED_PERCENT), **details)
    return Result(OK, words, **details)


class Short:
    """Short runs by name, each run once, for others to be compared with."""

    def __init__(self, bundle):
        self._bundle, self._made = bundle, {}

    def weights(self, name, settings, limit_s):
        if name not in self._made:
            train(self._bundle, settings, limit_s, name)
            self._made[name] = weights(self._bundle, name)
        return self._made[name]

    def compare(self, name, settings, to, to_settings, bound, limit_s):
        before = self.weights(to, to_settings, limit_s / 2)
        gap = difference(self.weights(name, settings, limit_s / 2), before)
        words = ("the same bits as %s" % to if gap == 0 else
                 "weights differ from %s by %.1e" % (to, gap))
        state = OK if gap <= bound else FAILED
        if state == FAILED:
            words += ", more than %g" % bound
        return Result(state, words, difference=gap)


def graphs_key(bundle, limit_s=30):
    """Returns "section.cuda_graphs", or None if the trainer lacks the key."""
    outcome = bundle.run(["bin/trainer", "train", "--print-config", "--set",
                          "train.steps=1"], limit_s)
    section = ""
    for line in outcome.out.splitlines():
        if line.startswith("["):
            section = line.strip().strip("[]")
        if re.match(r"cuda_graphs\s*=", line):
            return section + ".cuda_graphs"
    return None


def graphs_piece(bundle, short):
    def work(limit_s):
        key = graphs_key(bundle)
        if key is None:
            return Result(SKIPPED, "the trainer has no key cuda_graphs")
        on = SHORT + ["train.device=" + GPU, key + "=on"]
        off = SHORT + ["train.device=" + GPU, key + "=off"]
        return short.compare("graphs", on, "eager", off, 0, limit_s)
    return Piece("graphs", "trainings", WEIGHTS_LIMIT_S, guarded(work))


def pieces(bundle, mnist=None):
    cases = dict(ACCURACY)
    if mnist:
        cases["lenet MNIST"] = [
            "model.kind=lenet", "data.kind=mnist", "train.epochs=3",
            "data.train_count=8000", "data.test_count=2000",
            "data.path=" + os.path.abspath(mnist)]
    for name, settings in cases.items():
        yield Piece(name, "trainings", ACCURACY_LIMIT_S, guarded(
            lambda limit_s, settings=settings: compare_accuracy(
                bundle, settings, limit_s)))
    short = Short(bundle)
    gpu = SHORT + ["train.device=" + GPU]
    gpt = TEXT + ["train.device=" + GPU]
    for name, settings, to, to_settings, bound in (
            ("1 rank", gpu, "CPU", SHORT + ["train.device=cpu:0"],
             CPU_DIFFERENCE_MAX),
            ("2 ranks", gpu + ["mesh.dp=2"], "1 rank", gpu,
             RANKS_DIFFERENCE_MAX),
            ("4 ranks", gpu + ["mesh.dp=4"], "1 rank", gpu,
             RANKS_DIFFERENCE_MAX),
            ("4 ranks again", gpu + ["mesh.dp=4"], "4 ranks",
             gpu + ["mesh.dp=4"], 0),
            ("2 stages", gpu + ["mesh.pp=2", "train.micro_batch_size=16"],
             "1 rank", gpu, RANKS_DIFFERENCE_MAX),
            ("2 pieces", gpt + ["mesh.tp=2"], "GPT on 1 rank", gpt,
             RANKS_DIFFERENCE_MAX)):
        yield Piece("%s on one GPU" % name, "trainings", WEIGHTS_LIMIT_S,
                    guarded(lambda limit_s, a=(name, settings, to, to_settings,
                                               bound): short.compare(
                                                   *a, limit_s)))
    yield graphs_piece(bundle, short)
