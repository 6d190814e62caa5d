"""Compares two runs of a case, number by number.

    differences = compare(case, got, want, nearby, void)
    # ["parameter 0.weight: 0.012 away, limit 1e-09: ..."]; empty: alike

`want` is PyTorch in f64. `nearby` is PyTorch once more, with the errors that the
case's precision cannot avoid: in that precision, and in f64 from first values that
differ by 4e-16. A number of the run may be away from `want` by the largest of

  a floor        1e-9 in f64, 3e-5 in f32, 2^-6 in bf16, 2^-9 in f16;
  TIMES_OWN      times what the same number is away in `nearby`;
  TIMES_WORST    times the most that any of its kind is away there.

Distances are relative to the norm of a tensor. The floors: f64 has 1e-13 in most
runs. A chain of some ten sums and products of f32 and five steps leaves about a
hundred roundings of 6e-8. A number of 16 bits is rounded where it is stored, by up
to 2^-9 or 2^-12; four such roundings meet in a gradient, and count twice in its
square. The other two limits are the larger ones in networks that amplify errors:
norms of few rows, Adam's step along a gradient near 0.
"""

import math

import torch

FLOORS = {"f64": 1e-9, "f32": 3e-5, "bf16": 2.0 ** -6, "f16": 2.0 ** -9}
F64_CHANGE = 4e-16  # of the first values
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
    }


class Comparison:

    def __init__(self, case, void):
        keys = case["config"]
        self._precision = keys["train"]["precision"]
        self._optimizer = keys["optimizer"]["kind"]
        # Rounding moves void biases, by whole steps in Adam and its kin; in
        # lower precisions more than it moves others. Running means follow.
        self._void = void if self._void_moves() else set()
        self.differences = []

    def _void_moves(self):
        return self._optimizer != "sgd" or self._precision != "f64"

    def _left_out(self, kind, name):
        if kind == "parameter":
            return name in self._void
        if kind == "state":
            return name.rsplit(".", 1)[0] in self._void
        return bool(self._void) and kind in ("buffer", "evaluation loss")

    def numbers(self, got, want, nearby):
        got, want, nearby = map(numbers_of, (got, want, nearby))
        for kind, wanted in want.items():
            names = [n for n in wanted if not self._left_out(kind, n)]
            own = {n: distance(nearby[kind][n], wanted[n]) for n in names}
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
        self._equal("learning rate", got.rates, want.rates)
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


def compare(case, got, want, nearby, void):
    """`void`: names of biases whose gradients are rounding alone."""
    comparison = Comparison(case, void)
    comparison.numbers(got, want, nearby)
    comparison.exact(got, want)
    return comparison.differences


def changed(start, seed):
    """First values that differ by a rounding of f64."""
    generator = torch.Generator().manual_seed(seed)
    return {name: value * (1 + F64_CHANGE * torch.randn(
        value.shape, generator=generator, dtype=value.dtype))
            if value.is_floating_point() else value
            for name, value in start.items()}
