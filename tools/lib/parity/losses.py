"""The losses of loss.kind, by PyTorch's own functions.

    loss = Loss(case["config"]["loss"], dtype)
    value = loss(output, target)        # of a global batch
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


class Loss:

    def __init__(self, keys, dtype):
        self._keys = keys
        self._reduction = keys.get("reduction", "mean")
        self._ignored = keys.get("ignore_index", -100)
        weights = keys.get("class_weights")
        self._weights = None
        if weights:
            self._weights = torch.tensor(weights, dtype=dtype)

    def __call__(self, output, target):
        if self._keys["kind"] == "cross_entropy":
            return F.cross_entropy(
                output.flatten(0, -2), target.flatten(), self._weights,
                ignore_index=self._ignored, reduction=self._reduction,
                label_smoothing=self._keys.get("label_smoothing", 0.0))
        function, option = PAIRS[self._keys["kind"]]
        options = {}
        if option in self._keys:
            options[option] = self._keys[option]
        if "pos_weight" in options:
            options["pos_weight"] = torch.tensor(options["pos_weight"],
                                                 dtype=output.dtype)
        return function(output, target, reduction=self._reduction, **options)

    def accuracy(self, output, target):
        """The share of the counted targets that are predicted right, by their
        weights; None for targets of numbers."""
        if self._keys["kind"] != "cross_entropy":
            return None
        target, guess = target.flatten(), output.flatten(0, -2).argmax(-1)
        counted = (target != self._ignored) & (target >= 0)
        weight = torch.ones(output.shape[-1], dtype=output.dtype)
        weight = self._weights if self._weights is not None else weight
        weight = weight[target.clamp(min=0)] * counted
        return ((weight * (guess == target)).sum() / weight.sum()).item()
