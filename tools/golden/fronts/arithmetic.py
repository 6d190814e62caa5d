"""PyTorch's side of tests/nn/fronts/arithmetic_fronts.cc."""

import torch


def positive(x):
    return x * x + 0.5


CASES = [
    ("sub_same", [[3, 4], [3, 4]], torch.sub),
    ("mul_same", [[3, 4], [3, 4]], torch.mul),
    ("div_same", [[3, 4], [3, 4]], lambda a, b: a / positive(b)),
    ("add_row", [[2, 3, 4], [4]], torch.add),
    ("sub_row", [[2, 3, 4], [4]], torch.sub),
    ("mul_row", [[2, 3, 4], [4]], torch.mul),
    ("div_row", [[2, 3, 4], [4]], lambda a, b: a / positive(b)),
    ("add_scalar", [[3, 4], []], torch.add),
    ("sub_scalar", [[3, 4], []], torch.sub),
    ("mul_scalar", [[3, 4], []], torch.mul),
    ("div_scalar", [[3, 4], []], lambda a, b: a / positive(b)),
    ("add_column", [[3, 1], [3, 4]], torch.add),
    ("sub_column", [[3, 1], [3, 4]], torch.sub),
    ("mul_column", [[3, 1], [3, 4]], torch.mul),
    ("div_column", [[3, 1], [3, 4]], lambda a, b: a / positive(b)),
    ("add_outer", [[2, 1, 3], [4, 1]], torch.add),
    ("sub_outer", [[2, 1, 3], [4, 1]], torch.sub),
    ("mul_outer", [[2, 1, 3], [4, 1]], torch.mul),
    ("div_outer", [[2, 1, 3], [4, 1]], lambda a, b: a / positive(b)),
    ("mul_rank_6", [[2, 1, 3, 1, 2, 1], [1, 2, 1, 2, 2, 2]], torch.mul),
    ("square", [[7]], lambda x: x * x),
    ("neg", [[5]], torch.neg),
    ("exp", [[3, 5]], torch.exp),
    ("log", [[3, 5]], lambda x: torch.log(positive(x))),
    ("sqrt", [[3, 5]], lambda x: torch.sqrt(positive(x))),
    ("scale", [[3, 5]], lambda x: x * -0.75),
    ("add_a_constant", [[3, 5]], lambda x: x + 2.5),
    ("sum_of_all", [[3, 4, 2]], torch.sum),
    ("sum_of_rows", [[4, 5]], lambda x: x.sum(-1)),
    ("sum_keep_dims", [[3, 4, 2]], lambda x: x.sum((0, 2), keepdim=True)),
    ("mean_of_all", [[3, 4, 2]], torch.mean),
    ("mean_of_images", [[2, 3, 5, 4]], lambda x: x.mean((1, 2))),
    ("mean_keep_dims", [[2, 6]], lambda x: x.mean(1, keepdim=True)),
    ("variance", [[4, 6]], lambda x: x.var(-1, unbiased=False)),
]
