"""PyTorch's side of tests/nn/fronts/matmul_fronts.cc."""

import torch

CASES = [
    ("matmul_plain", [[3, 4], [4, 5]], torch.matmul),
    ("matmul_nt", [[3, 4], [5, 4]], lambda a, b: a @ b.mT),
    ("matmul_tn", [[4, 3], [4, 5]], lambda a, b: a.mT @ b),
    ("matmul_tt", [[4, 3], [5, 4]], lambda a, b: a.mT @ b.mT),
    ("matmul_batch", [[2, 3, 4], [2, 4, 5]], torch.matmul),
    ("matmul_heads_nt", [[2, 2, 3, 4], [2, 2, 5, 4]], lambda a, b: a @ b.mT),
    ("matmul_batch_tn", [[2, 4, 3], [2, 4, 5]], lambda a, b: a.mT @ b),
    ("matmul_one_b", [[2, 3, 3, 4], [4, 5]], torch.matmul),
    ("matmul_one_b_nt", [[2, 3, 4], [1, 5, 4]], lambda a, b: a @ b.mT),
    ("matmul_one_b_tn", [[2, 4, 3], [4, 5]], lambda a, b: a.mT @ b),
    ("matmul_one_a", [[3, 4], [3, 4, 2]], torch.matmul),
    ("matmul_repeated", [[2, 1, 3, 4], [3, 4, 2]], torch.matmul),
    ("matmul_repeated_tt", [[2, 1, 4, 3], [3, 2, 4]],
     lambda a, b: a.mT @ b.mT),
]
