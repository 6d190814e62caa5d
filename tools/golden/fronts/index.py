"""PyTorch's side of tests/nn/fronts/index_fronts.cc."""

import torch


def zeros_of(x):
    """Zeros with the gradient of x."""
    return x - x.detach()


def places(shape, count):
    """Indices below `count`, some of them several times."""
    total = 1
    for extent in shape:
        total *= extent
    return torch.tensor([i * i % count for i in range(total)]).view(shape)


CASES = [
    ("sort_rows", [[4, 9]], lambda x: x.sort().values),
    ("sort_columns_down", [[2, 7, 3]],
     lambda x: x.sort(1, descending=True).values),
    ("sort_ties", [[2, 5]],
     lambda x: zeros_of(x).sort(dim=1, stable=True, descending=True).values),
    ("topk", [[4, 9]], lambda x: x.topk(3).values),
    ("topk_smallest", [[7, 2]], lambda x: x.topk(2, 0, largest=False).values),
    ("where_masks", [[3, 4], [3, 4]], lambda x, y: torch.where(x > y, x, y)),
    ("where_broadcast", [[3, 1], [1, 4]],
     lambda x, y: torch.where((x + y).detach() >= 0, x, y)),
    ("where_number", [[3, 4]], lambda x: torch.where(x <= 0.25, 2., x)),
    ("masked_fill", [[2, 3, 4]],
     lambda x: x.masked_fill(x[:1, :, :1].detach() < 0, -5)),
    ("masks_as_numbers", [[3, 4], [3, 4]],
     lambda x, y: x * (x != y) + y * (x < y) + (0 == zeros_of(x))),
    ("gather_columns", [[5, 4]],
     lambda x: x.gather(1, places((5, 1), 4))),
    ("gather_more", [[3, 4, 2]],
     lambda x: x.gather(1, places((3, 6, 2), 4))),
    ("gather_fewer_rows", [[5, 4]],
     lambda x: x.gather(0, places((7, 3), 5))),
    ("index_select", [[4, 3]], lambda x: x.index_select(0, places((7,), 4))),
    ("index_select_behind", [[2, 4, 3]],
     lambda x: x.index_select(-1, places((5,), 3))),
    ("scatter_add", [[4, 3], [6, 3]],
     lambda x, s: x.scatter_add(0, places((6, 3), 4), s)),
    ("index_add", [[2, 4, 3], [2, 6, 3]],
     lambda x, s: x.index_add(1, places((6,), 4), s)),
    ("cumsum_rows", [[3, 7]], lambda x: x.cumsum(-1)),
    ("cumsum_columns", [[2, 5, 3]], lambda x: x.cumsum(1)),
    ("meshgrid", [[3], [4]],
     lambda x, y: torch.mul(*torch.meshgrid(x, y, indexing="ij"))),
    ("meshgrid_xy", [[3], [4], [2]],
     lambda x, y, z: torch.stack(
         torch.meshgrid(x, y, z, indexing="xy")).prod(0)),
    ("einsum_matmul", [[3, 4], [4, 5]],
     lambda a, b: torch.einsum("ik,kj->ij", a, b)),
    ("einsum_attention", [[2, 3, 2, 4], [2, 5, 2, 4]],
     lambda q, k: torch.einsum("bqhd,bkhd->bhqk", q, k)),
    ("einsum_transposed", [[2, 4, 3], [2, 5, 4]],
     lambda a, b: torch.einsum("bki,bjk->bij", a, b)),
    ("einsum_result_order", [[2, 3, 4], [4, 5]],
     lambda a, b: torch.einsum("bik,kj->jib", a, b)),
    ("einsum_sums_on_both_sides", [[2, 4, 3], [4, 5]],
     lambda a, b: torch.einsum("iks,kt->i", a, b)),
    ("einsum_outer", [[3], [4]], lambda a, b: torch.einsum("i,j->ji", a, b)),
    ("einsum_elements", [[3, 4], [4, 3]],
     lambda a, b: torch.einsum("ij,ji->ij", a, b)),
    ("einsum_scalar", [[3, 4], [3, 4]],
     lambda a, b: torch.einsum("ij, ij ->", a, b)),
    ("einsum_one_permuted", [[2, 3, 4]],
     lambda a: torch.einsum("nhc->cnh", a)),
    ("einsum_one_summed", [[2, 3, 4]],
     lambda a: torch.einsum("nhc->cn", a)),
]
