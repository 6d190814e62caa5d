#!/usr/bin/env python3
"""Runs the model of own_model.cc in PyTorch, with its exported weights. Fails
unless both give the same outputs, up to rounding.

    python3 check.py [mixer.safetensors [mixer_answers.safetensors]]

Needs torch and safetensors.
"""

import sys

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn.functional import gelu

TOKENS, WIDTH = 16, 64


class MixerBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.token1 = nn.Linear(TOKENS, 4 * TOKENS)
        self.token2 = nn.Linear(4 * TOKENS, TOKENS)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.channel1 = nn.Linear(WIDTH, 4 * WIDTH)
        self.channel2 = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.norm1(x).transpose(1, 2)
        x = x + self.token2(gelu(self.token1(y))).transpose(1, 2)
        return x + self.channel2(gelu(self.channel1(self.norm2(x))))


class Tokens(nn.Module):
    def forward(self, x):
        return x.flatten(2).transpose(1, 2)  # (N, D, 4, 4) to (N, T, D)


class MeanOfTokens(nn.Module):
    def forward(self, x):
        return x.mean(1)


def make_mixer():
    return nn.Sequential(
        nn.Conv2d(1, WIDTH, 7, 7), Tokens(),
        *[MixerBlock() for _ in range(4)],
        nn.LayerNorm(WIDTH), MeanOfTokens(), nn.Linear(WIDTH, 10))


def main(weights="mixer.safetensors", answers="mixer_answers.safetensors"):
    model = make_mixer().eval()
    model.load_state_dict(load_file(weights), strict=True)
    given = load_file(answers)
    with torch.no_grad():
        output = model(given["input"].permute(0, 3, 1, 2))  # to (N, C, H, W)
    difference = (output - given["output"]).abs().max().item()
    print("largest difference of %d outputs: %.2g" %
          (output.numel(), difference))
    return 0 if difference < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
