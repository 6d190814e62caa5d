"""PyTorch's side of tests/nn/fronts/shape_fronts.cc."""

import torch

CASES = [
    ("reshape", [[2, 6]], lambda x: x.reshape(3, 1, 4)),
    ("reshape_of_what_is_used_twice", [[2, 6]],
     lambda x: x.reshape(12) + (x * x).reshape(12)),
    ("permute", [[2, 3, 4, 5]], lambda x: x.permute(0, 2, 1, 3)),
    ("permute_cycle", [[2, 3, 4]], lambda x: x.permute(2, 0, 1)),
    ("transpose", [[2, 3, 4]], lambda x: x.transpose(1, 2)),
    ("concat_rows", [[2, 3], [1, 3], [4, 3]], lambda *xs: torch.cat(xs, 0)),
    ("concat_columns", [[2, 3], [2, 1]], lambda *xs: torch.cat(xs, 1)),
    ("concat_of_one_twice", [[2, 3, 2]], lambda x: torch.cat([x, x], 1)),
    ("slice_rows", [[5, 3]], lambda x: x[1:4]),
    ("slice_columns", [[2, 3, 6]], lambda x: x[..., 2:5]),
    ("slice_of_nothing", [[2, 3]], lambda x: torch.cat([x, x[:, 1:1]], 1)),
    ("split", [[2, 3, 6]], lambda x: torch.mul(*x.split([3, 3], -1))),
]
