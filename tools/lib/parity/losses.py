"""The losses of loss.kind, by PyTorch's own functions.

    loss = Loss(case["config"]["loss"], dtype)
    value = loss(output, target)        # of a global batch
    value = loss.sum(output, target)    # of a part; loss.divisor() of the whole
    share = loss.accuracy(output, target)
"""

import torch
from torch.nn import functional as F

PAIRS = {  # losses of a target of numbers: the function, and its option
    "mse": (F.mse_loss, None),
    "l1": (F.l1_loss, None),
    "huber": (F.huber_loss, "delta"),
    "smooth_l1": (F.smooth_l1_loss, "beta"),
    "bce": (F.binary_cross_entropy_with_logits, "pos_weight"),
}


PADDING = -100  # target that no loss counts, data/text/token_windows.cc


class Loss:

    def __init__(self, keys, classification, dtype):
        self._keys = keys
        self._kind = keys.get("kind", "auto")
        if self._kind == "auto":
            self._kind = "cross_entropy" if classification else "mse"
        self._reduction = keys.get("reduction", "mean")
        self._ignored = keys.get("ignore_index", PADDING)
        weights = keys.get("class_weights")
        self._weights = None
        if weights:
            self._weights = torch.tensor(weights, dtype=dtype)

    def __call__(self, output, target):
        return self._reduced(output, target, self._reduction)

    def sum(self, output, target):
        return self._reduced(output, target, "sum")

    def divisor(self, output, target):
        """What the sum is divided by."""
        if self._reduction == "sum":
            return 1
        if self._kind != "cross_entropy":
            return target.numel()
        return self._weights_of(output, target).sum().item()

    def _reduced(self, output, target, reduction):
        if self._kind == "cross_entropy":
            target = torch.where(target == PADDING, self._ignored, target)
            return F.cross_entropy(
                output.flatten(0, -2), target.flatten(), self._weights,
                ignore_index=self._ignored, reduction=reduction,
                label_smoothing=self._keys.get("label_smoothing", 0.0))
        function, option = PAIRS[self._kind]
        options = {}
        if option in self._keys:
            options[option] = self._keys[option]
        if "pos_weight" in options:
            options["pos_weight"] = torch.tensor(options["pos_weight"],
                                                 dtype=output.dtype)
        return function(output, target, reduction=reduction, **options)

    def _weights_of(self, output, target):
        """The weight of each target, 0 of those that do not count."""
        target = target.flatten()
        counted = (target != self._ignored) & (target != PADDING)
        weight = torch.ones(output.shape[-1], dtype=output.dtype)
        weight = self._weights if self._weights is not None else weight
        return weight[target.clamp(min=0)] * counted

    def counts(self, output, target):
        """Whether any target counts."""
        return (self._kind != "cross_entropy" or
                self._weights_of(output, target).sum().item() != 0)

    def accuracy(self, output, target):
        """The share of the counted targets that are predicted right, by their
        weights; None for targets of numbers."""
        if self._kind != "cross_entropy":
            return None
        guess = output.flatten(0, -2).argmax(-1)
        weight = self._weights_of(output, target)
        right = weight * (guess == target.flatten())
        return (right.sum() / weight.sum()).item()
