"""PyTorch's side of tests/nn/fronts/loss_fronts.cc."""

import torch
import torch.nn.functional as F


def targets(rows, classes):
    return torch.tensor([-100 if i % 4 == 3 else i * 7 % classes
                         for i in range(rows)])


def weights(classes, dtype):
    return torch.tensor([0.25 * (1 + c) for c in range(classes)], dtype=dtype)


def cross_entropy(x, weighted=False, smoothing=0.0):
    """Returns the sum, the divisor of PyTorch's mean, and the weight of the
    correct predictions."""
    classes = x.shape[-1]
    x = x.reshape(-1, classes)
    y = targets(x.shape[0], classes)
    w = weights(classes, x.dtype)
    options = dict(weight=w if weighted else None, label_smoothing=smoothing)
    counted = y != -100
    each = w[y.clamp(min=0)] if weighted else torch.ones(len(y))
    right = (x.argmax(1) == y) & counted
    total = F.cross_entropy(x, y, reduction="sum", **options)
    count = each[counted].sum()
    mean = F.cross_entropy(x, y, **options)
    assert torch.allclose(mean * count, total)
    return total, count, each[right].sum()


def pairs(function, **options):
    return lambda x, t: (function(x, t, reduction="sum", **options),
                         x.numel(), 0)


def bce(x, pos_weight=1.0):
    t = torch.tensor([(i % 5) / 4 for i in range(x.numel())],
                     dtype=x.dtype).reshape(x.shape)
    loss = F.binary_cross_entropy_with_logits(
        8 * x, t, reduction="sum",
        pos_weight=torch.tensor(pos_weight, dtype=x.dtype))
    return loss, x.numel(), 0


CASES = [
    ("cross_entropy_smoothed", [[9, 5]],
     lambda x: cross_entropy(x, smoothing=0.1)),
    ("cross_entropy_weighted", [[9, 5]],
     lambda x: cross_entropy(x, weighted=True)),
    ("cross_entropy_weighted_and_smoothed", [[3, 4, 7]],
     lambda x: cross_entropy(x, weighted=True, smoothing=0.3)),
    ("cross_entropy_all_smoothed", [[9, 5]],
     lambda x: cross_entropy(x, smoothing=1.0)),
    ("l1_loss", [[4, 3]], lambda x: pairs(F.l1_loss)(x, x.detach() * 0 + 0.3)),
    ("huber_loss", [[4, 5]],
     lambda x: pairs(F.huber_loss, delta=0.4)(x, x.detach() * 0 + 0.1)),
    ("smooth_l1_loss", [[4, 5]],
     lambda x: pairs(F.smooth_l1_loss, beta=0.4)(x, x.detach() * 0 + 0.1)),
    ("smooth_l1_loss_without_beta", [[4, 3]],
     lambda x: pairs(F.smooth_l1_loss, beta=0.0)(x, x.detach() * 0 + 0.3)),
    ("bce_with_logits", [[4, 5]], bce),
    ("bce_with_logits_weighted", [[4, 5]], lambda x: bce(x, pos_weight=3.0)),
]
