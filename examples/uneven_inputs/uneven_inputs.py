# The same as uneven_inputs.cc, with PyTorch:
#
#   python3 uneven_inputs.py
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.optim as optim
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP

INPUTS = 5


def run(rank, size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "29500"
    dist.init_process_group("gloo", rank=rank, world_size=size)
    model = torch.nn.Linear(1, 1)
    ddp = DDP(model)
    sgd = optim.SGD(ddp.parameters(), lr=0.01)
    before = model.bias.item()
    inputs = 0
    with Join([ddp]):
        # Rank 1 has one input more than rank 0.
        for _ in range(INPUTS + rank):
            sgd.zero_grad()
            ddp(torch.ones(1, 1)).sum().backward()
            sgd.step()
            inputs += 1
    print(f"[{rank}] has used all {inputs} of its inputs")
    # Rank 0 has rank 1's sixth step, too, by half the gradient of rank 1.
    moved = before - model.bias.item()
    assert abs(moved - 0.01 * 5.5) < 1e-6, "the replicas differ"
    if rank == 0:
        print("both ranks have made 6 steps")
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(run, args=(2,), nprocs=2)
