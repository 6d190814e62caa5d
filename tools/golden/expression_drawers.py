"""The drawers of an expression's ops, by op, and the distances that they keep.

    DRAWERS["Sort"](draw, "Sort")

A drawer takes one step of a draw (expression_draw.py), or raises Unfit: without a
value that fits, or near a kink or a tie of the op. They are in
expression_numbers.py and expression_layouts.py.
"""

import torch

# How far values stay from kinks and ties, relative to the largest of them.
MARGIN = 1e-4

DRAWERS = {}


class Unfit(Exception):
    """A step that cannot be taken; another one is drawn."""


def drawer(*ops):
    def register(function):
        for op in ops:
            DRAWERS[op] = function
        return function
    return register


def fit(condition):
    if not condition:
        raise Unfit


def broadcasts(*shapes):
    try:
        torch.broadcast_shapes(*shapes)
        return True
    except RuntimeError:
        return False


# --- distances from kinks and ties ----------------------------------------------


def above(x, least):
    return x.numel() == 0 or bool(x.detach().min() > least)


def below(x, most):
    return x.numel() == 0 or bool(x.detach().max() < most)


def scale_of(*xs):
    """The largest element, at least 1."""
    return max([1.0] + [x.detach().abs().max().item() for x in xs
                        if torch.is_tensor(x) and x.numel()])


def apart(a, b):
    """Whether no element of a is near that of b."""
    a = a.detach()
    distance = (a - (b.detach() if torch.is_tensor(b) else b)).abs()
    return distance.numel() == 0 or bool(
        distance.min() > MARGIN * scale_of(a, b))


def distinct(x, axis):
    """Whether elements along the axis are apart."""
    x = x.detach()
    if x.numel() == 0 or x.shape[axis] < 2:
        return True
    return bool(x.sort(axis).values.diff(dim=axis).min()
                > MARGIN * scale_of(x))


def clear_extreme(x, axes, sign):
    """Whether the largest (sign 1) or smallest over the axes has no rival."""
    x = sign * x.detach()
    axes = [axis % x.dim() for axis in axes] or list(range(x.dim()))
    rows = x.permute([a for a in range(x.dim()) if a not in axes] + axes)
    rows = rows.flatten(x.dim() - len(axes)) if axes else rows.reshape(1)
    if rows.shape[-1] == 0:
        raise Unfit
    return rows.shape[-1] < 2 or distinct(rows.topk(2, -1).values, -1)
