# The same as ddp_toy.cc, with PyTorch:
#
#   python3 ddp_toy.py
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.optim as optim
from torch.nn.parallel import DistributedDataParallel as DDP


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def run(rank, size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "29500"
    dist.init_process_group("gloo", rank=rank, world_size=size)
    path = "ddp_toy.pt"
    ddp = DDP(ToyModel())
    sgd = optim.SGD(ddp.parameters(), lr=0.001)
    if rank == 0:
        torch.save(ddp.state_dict(), path)
    dist.barrier()
    ddp.load_state_dict(torch.load(path))
    loss = nn.MSELoss()(ddp(torch.randn(20, 10)), torch.randn(20, 5))
    loss.backward()
    sgd.step()
    dist.barrier()
    if rank == 0:
        os.remove(path)
    # Every rank had other data, and all have the same parameters.
    weight = ddp.module.net1.weight.detach()
    rows = [torch.empty_like(weight) for _ in range(size)]
    dist.all_gather(rows, weight)
    assert torch.equal(rows[0], rows[1]), "the replicas differ"
    if rank == 0:
        print("the replicas are equal after a step")
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(run, args=(2,), nprocs=2)
