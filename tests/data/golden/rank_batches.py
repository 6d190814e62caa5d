"""Prints the expected batches of tests/data/rank_batches_test.cc.

Needs PyTorch: python3 tests/data/golden/rank_batches.py

For each case the global batches: number of samples of a rank, and the samples of
all ranks, sorted.
"""

from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

CASES = [(10, 4, 1), (10, 4, 2), (10, 4, 3), (16, 2, 4), (9, 2, 4), (15, 2, 4),
         (3, 8, 2), (7, 1, 3), (7, 3, 2)]

for size, world, batch_size in CASES:
    for drop_last in (False, True):
        ranks = []
        for rank in range(world):
            sampler = DistributedSampler(range(size), world, rank,
                                         shuffle=False, drop_last=drop_last)
            ranks.append([batch.tolist() for batch in DataLoader(
                range(size), batch_size, sampler=sampler, drop_last=drop_last)])
        batches = []
        for parts in zip(*ranks, strict=True):
            assert len({len(part) for part in parts}) == 1
            samples = sorted(i for part in parts for i in part)
            batches.append("{%d, {%s}}" % (
                len(parts[0]), ", ".join(map(str, samples))))
        print("{%d, %d, %d, %s, {%s}}," % (
            size, world, batch_size, str(drop_last).lower(),
            ", ".join(batches)))
