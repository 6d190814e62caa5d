"""A network of the trainer's model.layers as a module of PyTorch.

    network = Network(["linear 8", "relu", "linear 3"], sample_shape=[5])
    y = network(x)      # images are (N, H, W, C), as in the trainer

Parameters have the trainer's names: the number of the layer, and PyTorch's word.
"""

import torch
from torch import nn

from parity.dropout import Dropout
from parity.module import Module


def first_to_last(x):
    return x.movedim(1, -1)


def last_to_first(x):
    return x.movedim(-1, 1)


class ChannelsLast(nn.Module):
    """A module that works on the last axis, applied to the channels."""

    def forward(self, x):
        if x.dim() != 4:
            return super().forward(x)
        return last_to_first(super().forward(first_to_last(x)))


class Linear(ChannelsLast, nn.Linear):
    pass


class LayerNorm(ChannelsLast, nn.LayerNorm):
    pass


class RmsNorm(ChannelsLast, nn.RMSNorm):
    pass


class ChannelsFirst(nn.Module):
    """A module that works on axis 1, applied to the features of tokens."""

    def forward(self, x):
        if x.dim() != 3:
            return super().forward(x)
        return first_to_last(super().forward(last_to_first(x)))


class BatchNorm1d(ChannelsFirst, nn.BatchNorm1d):
    pass


class GroupNorm(ChannelsFirst, nn.GroupNorm):
    pass


def parse(text):
    """("conv", [8, 3], {"stride": 2}) of "conv 8 3 stride=2"."""
    kind, *rest = text.split()
    numbers = [float(word) for word in rest if "=" not in word]
    options = dict(word.split("=") for word in rest if "=" in word)
    return (kind, [int(n) if n == int(n) else n for n in numbers],
            {name: float(value) for name, value in options.items()})


def make_layer(path, kind, numbers, options, width, rank):
    """The module of a layer, None for those without one; `width` and `rank` are
    the features and the axes of its input."""
    bias = bool(options.get("bias", 1))

    def window():
        return numbers[0], int(options.get("stride", numbers[0])), \
            int(options.get("pad", 0))

    def conv():
        return dict(stride=int(options.get("stride", 1)),
                    padding=int(options.get("pad", 0)), bias=bias,
                    dilation=int(options.get("dilation", 1)),
                    groups=int(options.get("groups", 1)))

    makers = {
        "conv": lambda: nn.Conv2d(width, *numbers, **conv()),
        "convtranspose": lambda: nn.ConvTranspose2d(width, *numbers, **conv()),
        "linear": lambda: Linear(width, numbers[0], bias),
        "embedding": lambda: nn.Embedding(*numbers),
        "batchnorm": lambda: (nn.BatchNorm2d if rank == 4
                              else BatchNorm1d)(width),
        "layernorm": lambda: LayerNorm(width),
        "rmsnorm": lambda: RmsNorm(width),
        "groupnorm": lambda: GroupNorm(numbers[0], width),
        "relu": nn.ReLU,
        "leakyrelu": lambda: nn.LeakyReLU(options.get("slope", 0.01)),
        "gelu": lambda: nn.GELU("tanh" if options.get("tanh") else "none"),
        "silu": nn.SiLU,
        "sigmoid": nn.Sigmoid,
        "tanh": nn.Tanh,
        "maxpool": lambda: nn.MaxPool2d(*window()),
        "avgpool": lambda: nn.AvgPool2d(*window()),
        "adaptiveavgpool": lambda: nn.AdaptiveAvgPool2d(numbers[0]),
        "flatten": nn.Flatten,
        "dropout": lambda: Dropout(path, numbers[0]),
    }
    return makers[kind]() if kind in makers else None


class Network(Module):

    def __init__(self, layers, sample_shape):
        """`sample_shape`: [H, W, C], [K], or [T] of tokens. Raises ValueError or
        RuntimeError for layers that do not fit together."""
        super().__init__()
        self.layers, self._kinds = layers, []
        tokens = parse(layers[0])[0] == "embedding"
        # One sample is traced through the layers to find their widths.
        x = torch.zeros((1, *sample_shape),
                        dtype=torch.int64 if tokens else torch.float32)
        x, kept = last_to_first(x) if x.dim() == 4 else x, {}
        for i, text in enumerate(layers):
            kind, numbers, options = parse(text)
            width = x.shape[1] if x.dim() == 4 else x.shape[-1]
            self._kinds.append((kind, numbers))
            module = make_layer(str(i), kind, numbers, options, width, x.dim())
            if module is not None:
                self.add_module(str(i), module.eval())
            with torch.no_grad():
                x = self._layer(i, x, kept)
        self.outputs = x.shape[1] if x.dim() == 4 else x.shape[-1]
        self.train()

    def _layer(self, i, x, kept):
        kind, numbers = self._kinds[i]
        if kind == "stash":
            kept[numbers[0]] = x
            return x
        if kind == "popadd":
            return x + kept.pop(numbers[0])
        if kind == "popconcat":
            axis = 1 if x.dim() == 4 else -1
            return torch.cat([kept.pop(numbers[0]), x], axis)
        return getattr(self, str(i))(x)

    def forward(self, x):
        x, kept = last_to_first(x) if x.dim() == 4 else x, {}
        for i in range(len(self._kinds)):
            x = self._layer(i, x, kept)
        return first_to_last(x) if x.dim() == 4 else x

    def void_biases(self):
        names = set()
        for i, (kind, _) in enumerate(self._kinds[:-1]):
            behind = getattr(self, str(i + 1), None)
            if kind in ("conv", "linear", "convtranspose") and (
                    self._kinds[i + 1][0] == "batchnorm"
                    or isinstance(behind, nn.GroupNorm)
                    and behind.num_groups == behind.num_channels):
                names.add("%d.bias" % i)
        return names
