# The same as elastic_ddp.cc, with PyTorch:
#
#   torchrun --nnodes=2 --nproc-per-node=2 --rdzv-backend=c10d \
#       --rdzv-endpoint=n1:29400 elastic_ddp.py   # on n1 and n2
import torch
import torch.distributed as dist
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
    print(f"[{rank}] starts, one of {size}")
    ddp = DDP(ToyModel())
    sgd = optim.SGD(ddp.parameters(), lr=0.001)
    loss_fn = nn.MSELoss()
    loss_fn(ddp(torch.randn(20, 10)), torch.randn(20, 5)).backward()
    sgd.step()
    mine = ddp.module.net1.weight.detach()
    first = mine.clone()
    dist.broadcast(first, src=0)
    assert torch.equal(first, mine), "the replicas differ"
    print(f"[{rank}] has the parameters of rank 0")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run(dist.get_rank(), dist.get_world_size())
    dist.destroy_process_group()
