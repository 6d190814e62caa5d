"""PyTorch's side of tests/nn/fronts/activation_fronts.cc."""

import torch
import torch.nn.functional as F

CASES = [
    ("leaky_relu", [[5, 7]], lambda x: F.leaky_relu(x, 0.2)),
    ("gelu", [[5, 7]], F.gelu),
    ("gelu_tanh", [[5, 7]], lambda x: F.gelu(x, approximate="tanh")),
    ("silu", [[5, 7]], F.silu),
    ("sigmoid", [[5, 7]], torch.sigmoid),
    ("tanh", [[5, 7]], torch.tanh),
    ("softmax", [[3, 7]], lambda x: F.softmax(x, -1)),
    ("softmax_of_axis_1", [[2, 5, 3]], lambda x: F.softmax(x, 1)),
    ("log_softmax", [[3, 7]], lambda x: F.log_softmax(x, -1)),
    ("log_softmax_of_axis_0", [[4, 5]], lambda x: F.log_softmax(x, 0)),
]
