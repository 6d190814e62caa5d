"""Writes the state of a training loop as a program in PyTorch saves it.

    python3 tools/golden/make_state.py tests/golden

The file is tests/golden/state_pt.safetensors, by Python's safetensors; what Save()
(troupe/state.h) writes of the same values has the same bytes.
"""

import os
import sys

import torch
from safetensors.torch import save_file

from golden_values import formula


def make_state(folder):
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    state = model.state_dict()
    for name, tensor in list(state.items()):
        if tensor.dtype == torch.float32:
            state[name] = formula(name, tensor.shape, 1, torch.float32)
    state["1.num_batches_tracked"] = torch.tensor(7)
    for name, parameter in model.named_parameters():
        name = "optimizer.%s.momentum_buffer" % name
        state[name] = formula(name, parameter.shape, 1, torch.float32)
    state["epoch"] = torch.tensor(3)
    state["best_loss"] = torch.tensor(0.125, dtype=torch.float64)
    save_file(state, os.path.join(folder, "state_pt.safetensors"),
              metadata={"format": "pt"})


if __name__ == "__main__":
    make_state(sys.argv[1])
