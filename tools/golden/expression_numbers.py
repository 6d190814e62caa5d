"""How steps that compute are drawn: their operands and attributes."""

import torch

from expression_drawers import (Unfit, above, apart, below, broadcasts,
                                clear_extreme, distinct, drawer, fit)


# --- element by element ------------------------------------------------------


@drawer("+", "-", "*", "/")
def arithmetic(d, op):
    a = d.pick(losses=True)
    if op == "-" and d.chance(0.15):
        d.step(op, a)
    elif d.chance(0.2):
        number = d.number()
        fit(op != "/" or abs(number) > 0.2)
        d.step(op, a, number)
    elif d.chance(0.2):
        fit(op != "/" or above(d[a].abs(), 0.3))
        d.step(op, d.number(), a)
    else:
        b = d.partner(a, kind=d.choice(["normal", "positive"]))
        if d.chance(0.5):
            a, b = b, a
        fit(op != "/" or above(d[b].abs(), 0.3))
        d.step(op, a, b)


DOMAINS = {
    "Exp": lambda x: below(x, 4),
    "Log": lambda x: above(x, 0.1),
    "Sqrt": lambda x: above(x, 0.1),
    "Rsqrt": lambda x: above(x, 0.2),
    "Square": lambda x: True,
    "Abs": lambda x: apart(x, 0),
    "Sin": lambda x: below(x.abs(), 30),
    "Cos": lambda x: below(x.abs(), 30),
}


@drawer(*DOMAINS)
def unary(d, op):
    d.step(op, d.pick(DOMAINS[op], losses=True))


@drawer("Relu", "Sigmoid", "Tanh", "Silu", "Detached")
def method(d, op):
    d.step(op, d.pick(lambda x: op != "Relu" or apart(x, 0)))


@drawer("Pow")
def power(d, op):
    p = d.choice([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0])
    least = 0.3 if p < 0 else 0.1
    if p != int(p):
        x = d.pick(lambda x: above(x, least), losses=True)
    else:
        x = d.pick(lambda x: p >= 0 or above(x.abs(), least), losses=True)
    d.step(op, x, p=p)


@drawer("Clamp")
def clamp(d, op):
    x = d.pick(losses=True)
    low = d.number(-1.5, 0.5)
    limits = d.choice([{"low": low}, {"high": low},
                       {"low": low, "high": low + d.number(0.25, 2)}])
    for limit in limits.values():
        fit(apart(d[x], limit))
    d.step(op, x, **limits)


@drawer("Gelu")
def gelu(d, op):
    d.step(op, d.pick(), tanh=d.chance(0.5))


@drawer("LeakyRelu")
def leaky_relu(d, op):
    d.step(op, d.pick(lambda x: apart(x, 0)), slope=d.number(0.0, 1.0))


@drawer("Softmax", "LogSoftmax")
def softmax(d, op):
    x = d.pick(lambda x: x.dim() > 0 and 0 not in x.shape)
    d.step(op, x, axis=d.axis(d[x]))


# --- masks and choices -----------------------------------------------------------


@drawer("<", "<=", ">", ">=", "==", "!=")
def compare(d, op):
    exact = d.chance(0.7 if op in ("==", "!=") else 0.2)
    if exact:  # integers, and masks, which are 0 or 1
        masks = [name for name in d.masks if d[name].dtype == torch.float64]
        a = (d.choice(sorted(masks)) if masks and d.chance(0.5)
             else d.pick(kind="index"))
        dtype = d[a].dtype
        operands = (a, float(d.integer(0, 2)))
        if d.chance(0.5):
            def like(x):
                return x.dtype == dtype and broadcasts(x.shape, d[a].shape)
            others = [name for name in d.values if like(d[name]) and (
                dtype == torch.int64 or name in d.masks)]
            operands = (a, d.choice(others))
    else:
        a = d.pick(losses=True)
        b = d.number() if d.chance(0.4) else d.partner(a)
        fit(apart(d[a], d[b] if isinstance(b, str) else b))
        operands = (a, b)
    if d.chance(0.3):
        operands = operands[::-1]
    d.masks.update(d.step(op, *operands))


@drawer("Where")
def where(d, op):
    a = d.pick(losses=True)
    b = d.number() if d.chance(0.3) else d.partner(a)
    sides = (a, b) if d.chance(0.5) else (b, a)
    shapes = [d[each].shape for each in sides if isinstance(each, str)]
    fit(broadcasts(*shapes))
    condition = d.mask(torch.broadcast_shapes(*shapes),
                       lambda shape: broadcasts(shape, *shapes))
    d.step(op, condition, *sides)


@drawer("MaskedFill")
def masked_fill(d, op):
    x = d.pick()
    shape = d[x].shape
    mask = d.mask(shape, lambda other: broadcasts(shape, other) and (
        torch.broadcast_shapes(shape, other) == shape))
    d.step(op, x, mask, d.number())


# --- products --------------------------------------------------------------------


@drawer("MatMul")
def matmul(d, op):
    a = d.pick(lambda x: x.dim() >= 2)
    batch, inner = d[a].shape[:-2], d[a].shape[-1]

    def fits(x):
        return x.dim() >= 2 and x.shape[-2] == inner and broadcasts(
            batch, x.shape[:-2])

    try:
        b = d.pick(fits) if d.chance(0.5) else None
    except Unfit:
        b = None
    if b is None:
        b = d.add_partner(d.broadcast_shape(batch) + (inner, d.extent()))
        fit(fits(d[b]))
    d.step(op, a, b)


@drawer("Einsum")
def einsum(d, op):
    operands = [d.pick(lambda x: x.dim() > 0)]
    if d.chance(0.8):
        operands.append(d.pick() if d.chance(0.6) else
                        d.add_partner(d.shape(1, 3)))
    extents, lists = {}, []
    for name in operands:
        letters = ""
        for extent in d[name].shape:
            known = [c for c, e in extents.items()
                     if e == extent and c not in letters]
            if known and d.chance(0.7):
                letters += d.choice(known)
            else:
                letters += "abcdefghijklmnopqrstuvwxyz"[len(extents)]
                extents[letters[-1]] = extent
        lists.append(letters)
    kept = [c for c in extents if d.chance(0.6)]
    d.random.shuffle(kept)
    d.step(op, *operands, equation=",".join(lists) + "->" + "".join(kept))


@drawer("MaskedAttention")
def attention(d, op):
    q = d.pick(lambda x: x.dim() == 4 and 0 not in x.shape[2:]) if (
        d.chance(0.5)) else d.add_partner(d.shape(4, 4))
    samples, queries, heads, width = d[q].shape
    groups = d.choice([n for n in range(1, heads + 1) if heads % n == 0])
    keys = d.integer(1, 5)
    fit(width > 0)
    operands = [q] + [d.like((samples, keys, groups, width)) for _ in "kv"]
    scores = (samples, heads, queries, keys)

    def fits(shape):
        return broadcasts(shape, scores) and (
            torch.broadcast_shapes(shape, scores) == scores)

    options = {"mask": d.chance(0.5), "bias": d.chance(0.5),
               "causal": d.chance(0.4)}
    if options["mask"]:
        operands.append(d.mask(scores, fits))
    if options["bias"]:
        operands.append(d.partner_of_shape(scores, lambda x: fits(x.shape)))
    if d.chance(0.3):
        options["scale"] = d.number(-1, 1)
    d.step(op, *operands, **options)


# --- reductions and orders -------------------------------------------------------


@drawer("Sum", "Mean")
def reduce(d, op):
    x = d.pick(losses=True)
    d.step(op, x, axes=d.axes(d[x]), keep_dims=d.chance(0.4))


@drawer("Variance")
def variance(d, op):
    x = d.pick(lambda x: x.dim() > 0)
    axes, correction = d.axes(d[x]), d.integer(0, 1)
    count = 1
    for axis in axes or range(d[x].dim()):
        count *= d[x].shape[axis]
    fit(count > correction)
    d.step(op, x, axes=axes, correction=correction, keep_dims=d.chance(0.4))


@drawer("Amax", "Amin")
def extremes(d, op):
    x = d.pick()
    axes = d.axes(d[x])
    fit(clear_extreme(d[x], axes, 1 if op == "Amax" else -1))
    d.step(op, x, axes=axes, keep_dims=d.chance(0.4))


@drawer("Max", "Min", "Argmax", "Argmin")
def extreme(d, op):
    x = d.pick(lambda x: x.dim() > 0)
    axis = d.axis(d[x])
    fit(clear_extreme(d[x], [axis], 1 if op in ("Max", "Argmax") else -1))
    d.step(op, x, axis=axis, keep_dims=d.chance(0.4))


@drawer("TopK", "Sort", "Argsort")
def order(d, op):
    x = d.pick(lambda x: x.dim() > 0)
    axis = d.axis(d[x])
    fit(distinct(d[x], axis))
    if op == "TopK":
        d.step(op, x, k=d.integer(0 if d.chance(0.1) else 1,
                                  d[x].shape[axis]),
               axis=axis, largest=d.chance(0.5))
    else:
        d.step(op, x, axis=axis, descending=d.chance(0.5))


# --- losses ----------------------------------------------------------------------


@drawer("CrossEntropy")
def cross_entropy(d, op):
    logits = d.pick(lambda x: x.dim() >= 2 and x.numel() > 0)
    classes = d[logits].shape[-1]
    labels = d.index(tuple(d[logits].shape[:-1]), classes)
    options = {}
    if d.chance(0.4):
        options["label_smoothing"] = d.number(0.05, 0.9)
    if d.chance(0.4):
        options["class_weights"] = tuple(d.number(0.25, 2)
                                         for _ in range(classes))
    d.losses.update(d.step(op, logits, labels, **options))


@drawer("MeanSquaredError", "L1Loss", "HuberLoss")
def pair_loss(d, op):
    a = d.pick(lambda x: x.numel() > 0)
    b = d.like(d[a].shape)
    delta = {"delta": d.number(0.25, 2)} if op == "HuberLoss" else {}
    distance = (d[a] - d[b]).abs()
    fit(op != "L1Loss" or apart(distance, 0))
    fit(op != "HuberLoss" or apart(distance, delta["delta"]))
    d.losses.update(d.step(op, a, b, **delta))


@drawer("BceWithLogits")
def bce(d, op):
    logits = d.pick(lambda x: x.numel() > 0)
    target = d.add_input(d[logits].shape, "probability")
    weight = {"pos_weight": d.number(0.25, 3)} if d.chance(0.5) else {}
    d.losses.update(d.step(op, logits, target, **weight))
