"""Compares random expressions of ops with PyTorch: all values and gradients.

    bazel build //tools/golden:expressions
    python3 tools/golden/expressions.py                    # 300 draws
    python3 tools/golden/expressions.py --seed=17 --show   # that draw alone
    python3 tools/golden/expressions.py --draws=10000      # some minutes

Needs PyTorch (a CPU is enough) and safetensors. A draw is an expression of some
twenty ops: those of nn/autograd/{var,var_math,create}.h, activations and attention
with masks, on tensors of rank 0 to 4 with extents 0 to 5, of some draws to 33, on
indices and masks. Its scalar is the sum of all values that no op has used, times
constants. It is far from kinks and ties of its ops, so that a rounding changes no
branch.

"reference" computes in f64: an element may be 1e-9 away from PyTorch's f64,
relative to the largest element of its tensor, or to 1 if that is larger. "cpu"
computes in f32: 3e-5, or 20 times as far away as the worst of PyTorch's f32 in
the same draw, relative to the tensor's largest. A draw in which PyTorch's own
f32 is 1e-3 away is not compared in f32, and counted.

Exits 0 when all draws are alike; 1 after one that is different, or in which an op
fails, with the command that repeats it. After a hundred draws that are alike, the
ops that no draw has are listed.
"""

import argparse
import collections
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import warnings

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from expression_draw import draw_program
from expression_torch import OPS, Plant, evaluate

DRAWS = 300  # unless --draws or --seed is given
BATCH = 250  # draws in a call of the program
LISTED = 100  # draws after which ops that none has are listed
LINES_EVERY_S = 10  # time between lines of progress
LINES_MAX = 4  # differences that are shown of a draw
F64_LIMIT = 1e-9
F32_LIMIT = 3e-5
F32_TIMES = 20
F32_ILL = 1e-3

HERE = os.path.dirname(os.path.abspath(__file__))
HEADERS = os.path.join(HERE, "..", "..", "nn", "autograd")
# Functions of these headers that are no ops, and random numbers, which are not
# those of PyTorch.
LEFT_OUT = {"Apply", "Use", "Loss", "Rand", "Randn", "Randint", "Randperm",
            "RandLike", "RandnLike"}


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="the first draw (random); "
                        "without --draws the only one")
    parser.add_argument("--draws", type=int, help="number of draws (%d)" %
                        DRAWS)
    parser.add_argument("--device", choices=["reference", "cpu"],
                        help="compare this device alone (both)")
    parser.add_argument("--show", action="store_true",
                        help="print the expressions")
    parser.add_argument("--keep", metavar="DIR",
                        help="folder that keeps programs, inputs and results")
    parser.add_argument("--plant", metavar="OP[:gradient]", help="make a mistake "
                        "of a millionth in this op of PyTorch's side, to see that "
                        "it is found in f64")
    parser.add_argument("--program", default=os.path.join(
        HERE, "..", "..", "bazel-bin", "tools", "golden", "expressions"))
    arguments = parser.parse_args()
    if not os.access(arguments.program, os.X_OK):
        parser.error("no program %s; build it: bazel build "
                     "//tools/golden:expressions" % arguments.program)
    if arguments.draws is None:
        arguments.draws = DRAWS if arguments.seed is None else 1
    if arguments.draws < 1:
        parser.error("--draws=%d is below 1" % arguments.draws)
    if arguments.plant and arguments.plant.split(":")[0] not in OPS:
        parser.error("--plant=%s: there is no such op; there are %s" % (
            arguments.plant, " ".join(OPS)))
    if arguments.seed is None:
        arguments.seed = random.SystemRandom().randrange(1_000_000_000)
    return arguments


# --- both sides ------------------------------------------------------------------


class Results:
    """What the program has computed of a batch."""

    def __init__(self, path):
        self._file = safe_open(path, "pt")
        self.errors = self._file.metadata() or {}
        self._names = set(self._file.keys())

    def of(self, program):
        """{name: tensor} of a draw, gradients as "x0.grad"."""
        names = list(program.values)
        names += [name + ".grad" for name in program.gradients]
        return {name: self._file.get_tensor("%d/%s" % (program.seed, name))
                for name in names
                if "%d/%s" % (program.seed, name) in self._names}


def run_program(path, device, folder):
    files = [os.path.join(folder, name) for name in
             ("program.txt", "inputs.safetensors", device + ".safetensors")]
    done = subprocess.run([path, "--device=" + device, *files], check=False,
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("%s ends with %d: %s" % (path, done.returncode,
                                          done.stderr.strip()))
    return Results(files[-1])


def write_batch(folder, programs):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "program.txt"), "w",
              encoding="utf-8") as file:
        file.writelines(program.text() for program in programs)
    save_file({"%d/%s" % (program.seed, name): tensor.contiguous()
               for program in programs
               for name, (tensor, _) in program.inputs.items()},
              os.path.join(folder, "inputs.safetensors"))


def wanted(program):
    """All tensors that are compared, of PyTorch in f64."""
    return {**program.values, **{name + ".grad": gradient for name, gradient
                                 in program.gradients.items()}}


def planted(program, plant):
    """The same of PyTorch with a mistake."""
    values, gradients = evaluate(program, program.inputs, torch.float64, plant)
    program.values, program.gradients = values, gradients
    return program


# --- comparison ------------------------------------------------------------------


def distance(got, want):
    """The largest difference, relative to the largest element, at least 1."""
    if want.numel() == 0:
        return 0.0
    apart = (got.double() - want.double()).abs().max().item()
    largest = max(1.0, want.double().abs().max().item())
    return apart / largest if apart == apart else float("inf")


def compare(program, got, want, limit):
    """Lines about the tensors that differ, in the order of the steps."""
    lines = []
    about = {name: str(step) for step in program.steps
             for name in step.outputs}
    for name, tensor in want.items():
        label = "%s  (%s)" % (name, about[name]) if name in about else name
        mine = got.get(name)
        if mine is None and not name.endswith(".grad"):
            lines.append("%s is missing" % label)
            continue
        if mine is None:  # backward did not reach it
            mine = torch.zeros_like(tensor)
        if mine.shape != tensor.shape:
            lines.append("%s has the shape %s, not %s" % (
                label, list(mine.shape), list(tensor.shape)))
            continue
        apart = distance(mine, tensor)
        own = limit if tensor.is_floating_point() else 0
        if not apart <= own:
            at = int((mine.double() - tensor.double()).abs().nan_to_num(
                float("inf")).argmax())
            lines.append("%s: element %d is %.17g, not %.17g; %.1e away, "
                         "limit %.1e" % (
                             label, at, mine.flatten()[at].item(),
                             tensor.flatten()[at].item(), apart, own))
    return lines


def limit_of_f32(program):
    """The limit in f32; None if the draw is ill-conditioned there."""
    values, gradients = evaluate(program, program.inputs, torch.float32)
    near = {**values, **{name + ".grad": gradient
                         for name, gradient in gradients.items()}}
    worst = 0.0
    for name, tensor in wanted(program).items():
        apart = distance(near[name], tensor)
        if not tensor.is_floating_point() and apart > 0:
            return None
        worst = max(worst, apart)
    if not worst <= F32_ILL:
        return None
    return max(F32_LIMIT, F32_TIMES * worst)


# --- the draws of a call ---------------------------------------------------------


class Campaign:
    def __init__(self, arguments):
        self._arguments = arguments
        self._plant = Plant(arguments.plant) if arguments.plant else None
        self._start, self._shown_at = time.monotonic(), 0.0
        self._drawn, self._ops = 0, collections.Counter()
        self.words = collections.Counter()

    def run(self, root):
        seed, left = self._arguments.seed, self._arguments.draws
        while left > 0:
            count = min(left, BATCH)
            self._batch(os.path.join(root, "from-%d" % seed),
                        range(seed, seed + count))
            seed, left = seed + count, left - count

    def _batch(self, folder, seeds):
        programs = [draw_program(seed) for seed in seeds]
        write_batch(folder, programs)
        for program in programs:
            self._ops.update(step.op for step in program.steps)
            if self._arguments.show:
                print(program.text(), flush=True)
        if self._plant:
            programs = [planted(program, self._plant) for program in programs]
        devices = ([self._arguments.device] if self._arguments.device
                   else ["reference", "cpu"])
        results = {device: run_program(self._arguments.program, device, folder)
                   for device in devices}
        for program in programs:
            for device in devices:
                self._take(program, device, results[device])
            self._drawn += 1
        self._progress()

    def _take(self, program, device, results):
        error = results.errors.get(str(program.seed))
        limit = F64_LIMIT if device == "reference" else limit_of_f32(program)
        if error is not None:
            self._report(program, device, "failed", [error])
        elif limit is None:
            self.words["ill-conditioned on cpu"] += 1
        else:
            lines = compare(program, results.of(program), wanted(program),
                            limit)
            if lines:
                self._report(program, device, "different", lines)
            else:
                self.words["alike on " + device] += 1

    def _report(self, program, device, word, lines):
        self.words["%s on %s" % (word, device)] += 1
        more = len(lines) - LINES_MAX
        lines = lines[:LINES_MAX] + (["and %d more" % more] if more > 0 else [])
        print("draw %d: %s on %s\n    %s\n    to repeat it: python3 "
              "tools/golden/expressions.py --seed=%d%s" % (
                  program.seed, word, device, "\n    ".join(lines),
                  program.seed, self._options()), flush=True)

    def _options(self):
        """Options of this call that a repetition needs."""
        return "".join(" --%s=%s" % (name, value) for name, value in (
            ("device", self._arguments.device),
            ("plant", self._arguments.plant)) if value)

    def _progress(self):
        passed = time.monotonic() - self._start
        if passed >= self._shown_at + LINES_EVERY_S:
            self._shown_at = passed
            print("%4.0f s  %d of %d draws: %s" % (
                passed, self._drawn, self._arguments.draws,
                self._counts()), flush=True)

    def _counts(self):
        return ", ".join("%d %s" % (count, word)
                         for word, count in sorted(self.words.items()))

    def summary(self):
        print("%d draws from seed %d on in %.0f s: %s" % (
            self._drawn, self._arguments.seed, time.monotonic() - self._start,
            self._counts()), flush=True)

    def wrong(self):
        return any(word.startswith(("different", "failed"))
                   for word in self.words)

    def missing(self):
        """Ops that the headers or the program have, and no draw."""
        known = set(subprocess.run(
            [self._arguments.program, "--ops"], check=True,
            capture_output=True, text=True).stdout.split())
        for name in ("var.h", "var_math.h", "create.h"):
            with open(os.path.join(HEADERS, name), encoding="utf-8") as file:
                known.update(declared(file.read()))
        return sorted(known - LEFT_OUT - set(self._ops))


def declared(header):
    """Functions of a header that return a Var or several."""
    results = r"(?:Var|VarExtremes|VarSorted|std::vector<Var>)"
    return re.findall(r"^ *(?:static )?%s (?:operator)?([A-Z]\w*|\[\]|[^\s\w(]+)"
                      r"\(" % results, header, re.MULTILINE)


def main():
    arguments = parse_arguments()
    warnings.filterwarnings("ignore")  # PyTorch's
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    campaign = Campaign(arguments)
    try:
        if arguments.keep:
            campaign.run(arguments.keep)
        else:
            with tempfile.TemporaryDirectory() as root:
                campaign.run(root)
    except KeyboardInterrupt:
        pass
    if not campaign.wrong() and arguments.draws >= LISTED:
        for op in campaign.missing():
            print("no draw has " + op)
    campaign.summary()
    return 1 if campaign.wrong() else 0


if __name__ == "__main__":
    sys.exit(main())
