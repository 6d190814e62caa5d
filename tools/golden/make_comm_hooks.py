"""Prints the parameters that PyTorch's DDP has with each of its simple communication
hooks after five steps on two ranks.

    python3 tools/golden/make_comm_hooks.py

tests/troupe/reduction_dtype_test.cc has them, and the same inputs.
"""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

HOOKS = ["bf16_compress_hook", "fp16_compress_hook", "allreduce_hook"]


def inputs(rank, step):
    return torch.tensor([[((7 * (12 * rank + 3 * row + column) + 3 * step) % 11 - 5) / 3.0
                          for column in range(3)] for row in range(4)])


def train(rank, hook):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29731")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    model = torch.nn.Linear(3, 2)
    with torch.no_grad():
        model.weight.copy_((torch.arange(6.0) + 1).view(2, 3) / 16)
        model.bias.zero_()
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    ddp.register_comm_hook(None, getattr(default_hooks, hook))
    sgd = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for step in range(5):
        sgd.zero_grad()
        torch.nn.functional.mse_loss(ddp(inputs(rank, step)), torch.ones(4, 2)).backward()
        sgd.step()
    if rank == 0:
        values = [value for p in model.parameters() for value in p.flatten().tolist()]
        print(hook, ", ".join("%.9g" % value for value in values))
    dist.destroy_process_group()


if __name__ == "__main__":
    for name in HOOKS:
        mp.spawn(train, args=(name,), nprocs=2)
