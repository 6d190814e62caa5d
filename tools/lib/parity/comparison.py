"""Compares two runs of a case, number by number.

    differences = compare(case, got, want, [nearby], network)
    # ["parameter 0.weight: 0.012 away, limit 1e-09: ..."]; empty: alike

`want` is PyTorch in f64. Each of the list is PyTorch once more, with the errors
that the case's precision cannot avoid: in that precision, with Noise of some
roundings. A number of the run may be away from `want` by the largest of

  a floor        1e-9 in f64, 3e-5 in f32, 2^-6 in bf16, 2^-9 in f16;
  TIMES_OWN      times the most that the same number is away in them;
  TIMES_WORST    times the most that any of its kind is away in them.

Distances are relative to the norm of a tensor. The floors: f64 has 1e-13 in most
runs. A chain of some ten sums and products of f32 and five steps leaves about a
hundred roundings of 6e-8. A number of 16 bits is rounded where it is stored, by up
to 2^-9 or 2^-12; four such roundings meet in a gradient, and count twice in its
square. The other two limits are the larger ones in networks that amplify errors:
norms of few rows, Adam's step along a gradient near 0, such as that of samples under
l1 whose gradients cancel out. They also jump: a residual near 0 under l1, or a ReLU
near 0, takes its gradient to one side or to the other, and one run beside PyTorch's
rarely takes the trainer's. So a case that is away is looked at beside MORE such runs
(trial.py); a mistake moves none of them.
"""

import math

import torch

from parity import course

FLOORS = {"f64": 1e-9, "f32": 3e-5, "bf16": 2.0 ** -6, "f16": 2.0 ** -9}
# Deviation of noise: some roundings.
NOISE = {"f64": 4e-16, "f32": 1e-7, "bf16": 2.0 ** -8, "f16": 2.0 ** -11}
MORE = 15
TIMES_OWN, TIMES_WORST = 10, 3
# Limit on the difference of two norms of f64 that is rounding alone.
F64_NOISE = 1e-13
SMALLEST_NORM = 1e-6


def distance(a, b):
    """|a - b| / |b|; infinite where only one has a number that is not finite."""
    a, b = a.double(), b.double()
    if not (torch.isfinite(a).all() and torch.isfinite(b).all()):
        return 0.0 if torch.equal(a.nan_to_num(7.0), b.nan_to_num(7.0)) else (
            math.inf)
    return (a - b).norm().item() / max(b.norm().item(), SMALLEST_NORM)


def series(name, values):
    """{"loss of step 1": tensor} of numbers, of which some may be None."""
    return {"%s of step %d" % (name, i): torch.tensor(value,
                                                      dtype=torch.float64)
            for i, value in enumerate(values, start=1) if value is not None}


def numbers_of(run):
    """{kind: {name: tensor}} of all that is compared by distance."""
    return {
        "parameter": run.parameters,
        "buffer": {name: value for name, value in run.buffers.items()
                   if value.is_floating_point()},
        "state": run.states,
        "training loss": series("loss", run.losses),
        "gradient norm": series("norm", run.norms),
        "evaluation loss": series("evaluation", [e[1]
                                                 for e in run.evaluations]),
        "saved parameter": {"%s of step %d" % (name, step): value
                            for step, values in run.saved.items()
                            for name, value in values.items()},
    }


def coarsest(case):
    """The precision whose roundings count most."""
    used = {case["config"]["train"]["precision"]}
    if any(phase["mesh"]["dp"] > 1 for phase in case["phases"]):
        used.add(course.reduced_in(case["config"]))
    return max(used & set(FLOORS), key=FLOORS.get)


class Comparison:

    def __init__(self, case, network):
        keys = case["config"]
        self._precision = coarsest(case)
        self._optimizer = keys["optimizer"]["kind"]
        # Rounding moves void biases, by whole steps in Adam and its kin; in
        # lower precisions more than it moves others. Running means follow.
        moves = self._void_moves()
        self._void = network.void_biases() if moves else set()
        self._void_elements = network.void_elements() if moves else {}
        self.differences = []

    def _void_moves(self):
        return self._optimizer != "sgd" or self._precision != "f64"

    def _left_out(self, kind, name):
        if kind in ("parameter", "saved parameter"):
            return name.split(" ")[0] in self._void
        if kind == "state":
            return name.rsplit(".", 1)[0] in self._void
        return bool(self._void) and kind in ("buffer", "evaluation loss")

    def _numbers_of(self, run):
        """All numbers, with 0 in place of void elements."""
        numbers = numbers_of(run)
        for name, part in self._void_elements.items():
            for values in numbers.values():
                for key, value in values.items():
                    if value.dim() and (key == name or key.startswith(
                            (name + ".", name + " "))):
                        values[key] = value = value.clone()
                        value[part] = 0
        return numbers

    def numbers(self, got, want, nearby):
        """`nearby`: a list of runs."""
        want.saved = {step: want.saved[step] for step in got.saved
                      if step in want.saved}
        got, want = self._numbers_of(got), self._numbers_of(want)
        nearby = [self._numbers_of(run) for run in nearby]
        for kind, wanted in want.items():
            names = [n for n in wanted if not self._left_out(kind, n)]
            own = {n: max(distance(run[kind][n], wanted[n]) for run in nearby)
                   for n in names}
            worst = max(own.values(), default=0)
            for name in names:
                if name not in got[kind]:
                    self.differences.append("%s %s is not in the run" % (
                        kind, name))
                    continue
                limit = max(FLOORS[self._precision], TIMES_OWN * own[name],
                            TIMES_WORST * worst)
                self._check(kind, name, got[kind][name], wanted[name], limit)

    def _check(self, kind, name, got, want, limit):
        if got.shape != want.shape:
            self.differences.append("%s %s has the shape %s, not %s" % (
                kind, name, list(got.shape), list(want.shape)))
            return
        away = distance(got, want)
        small = (self._precision == "f64" and (got.double() - want).norm()
                 <= F64_NOISE * math.sqrt(want.numel()))
        if not small and not away <= limit:
            self.differences.append(
                "%s %s: %.3g away, limit %.2g: e.g. %s, not %s" % (
                    kind, name, away, limit, got.flatten()[:3].tolist(),
                    want.flatten()[:3].tolist()))

    def exact(self, got, want):
        """Learning rates, steps of evaluations, and in f64 accuracies."""
        self._equal("learning rate", got.rates, want.rates[:len(got.rates)])
        self._equal("step of evaluation", [e[0] for e in got.evaluations],
                    [e[0] for e in want.evaluations])
        if self._precision == "f64":
            self._equal("accuracy", got.accuracies, want.accuracies)
            if not self._void:
                self._equal("accuracy of evaluation",
                            [e[2] for e in got.evaluations],
                            [e[2] for e in want.evaluations])

    def _equal(self, what, got, want):
        def text(values):
            return ["%.9g" % value for value in values if value is not None
                    and not math.isnan(value)]
        if text(got) != text(want):
            self.differences.append("%s: %s, not %s" % (
                what, text(got), text(want)))


def compare(case, got, want, nearby, network):
    """`network` says which numbers are rounding alone."""
    comparison = Comparison(case, network)
    comparison.numbers(got, want, nearby)
    comparison.exact(got, want)
    return comparison.differences + course.check(case, got, want)


class Noise:
    """Disturbs values by some roundings of a precision."""

    def __init__(self, precision, seed):
        self._deviation = NOISE[precision]
        self._generator = torch.Generator().manual_seed(seed)

    def __call__(self, value):
        if not value.is_floating_point():
            return value
        return value * (1 + self._deviation * torch.randn(
            value.shape, generator=self._generator, dtype=value.dtype))
