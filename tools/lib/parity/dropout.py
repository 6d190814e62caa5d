"""Dropout that drops the elements that the trainer drops.

    drop = Dropout(path="4", p=0.5)
    drop.drawn_by = seed, step, positions     # of the samples in the batch
    y = drop(x)                               # x itself in evaluation
"""

import torch
from torch import nn

from parity import philox


class Dropout(nn.Module):

    def __init__(self, path, p):
        super().__init__()
        self.path, self.p, self.drawn_by = path, p, None

    def kept(self, elements):
        """Which elements of each sample stay, bool [N, elements]."""
        seed, step, positions = self.drawn_by
        return torch.stack([~torch.from_numpy(philox.dropped(
            seed, step, position, self.path, elements, self.p))
                            for position in positions])

    def applied(self, x, kept):
        return x * kept * (1 / (1 - self.p))

    def forward(self, x):
        """x [N, C, H, W] or, as in the trainer, [N, ..., C]."""
        if not self.training or self.p == 0:
            return x
        shape = (x.movedim(1, -1) if x.dim() == 4 else x).shape
        kept = self.kept(shape[1:].numel()).reshape(shape)
        return self.applied(x, kept.movedim(-1, 1) if x.dim() == 4 else kept)


class AttentionDropout(Dropout):

    def forward(self, x):
        """x: probabilities [N, heads, T, S]. A row of S keys begins at a draw
        whose number is a multiple of four (nn/kernels/attention.h)."""
        if not self.training or self.p == 0:
            return x
        n, heads, queries, keys = x.shape
        row = (keys + 3) // 4 * 4
        kept = self.kept(heads * queries * row)
        return self.applied(x, kept.reshape(n, heads, queries, row)[..., :keys])
