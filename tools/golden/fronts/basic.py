"""PyTorch's side of tests/nn/fronts/basic_fronts.cc."""

import torch.nn.functional as F

CASES = [
    ("linear", [[4, 3], [5, 3], [5]], F.linear),
    ("linear_of_a_vector", [[3], [5, 3], [5]], F.linear),
    ("linear_of_rank_4", [[2, 3, 1, 3], [5, 3], [5]], F.linear),
    ("linear_shared_weight", [[4, 3], [3, 3], [3]],
     lambda x, w, b: F.linear(F.linear(x, w, b), w, b)),
    ("relu", [[30]], F.relu),
    ("add_twice", [[3, 4]], lambda x: x + x + x),
]
