"""Prints the expected orders of tests/data/distributed_sampler_test.cc.

Needs PyTorch: python3 tests/data/golden/distributed_sampler.py
"""

from torch.utils.data.distributed import DistributedSampler

CASES = [(10, 4), (8, 4), (3, 8), (1, 3), (7, 1), (5, 2)]

for size, world in CASES:
    for drop_last in (False, True):
        print("{%d, %d, %s, {" % (size, world, str(drop_last).lower()), end="")
        ranks = []
        for rank in range(world):
            sampler = DistributedSampler(range(size), world, rank,
                                         shuffle=False, drop_last=drop_last)
            ranks.append("{%s}" % ", ".join(map(str, sampler)))
        print(", ".join(ranks) + "}},")
