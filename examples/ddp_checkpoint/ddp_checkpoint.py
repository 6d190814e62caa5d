# The same as ddp_checkpoint.cc, with PyTorch:
#
#   torchrun --nproc-per-node=2 ddp_checkpoint.py
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(torch.relu(self.net1(x)))


# Trains up to an epoch, from a checkpoint on if there is one, and returns the
# last epoch's loss on this rank.
def train(rank, path, epochs):
    torch.manual_seed(0)
    inputs = torch.randn(1024, 10)
    dataset = TensorDataset(inputs, inputs @ torch.randn(10, 5) / 10**0.5)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler)
    ddp = DDP(ToyModel())
    adam = torch.optim.Adam(ddp.parameters(), lr=0.01)
    scheduler = StepLR(adam, 1, 0.5)
    epoch = 0
    if os.path.exists(path):
        saved = torch.load(path)
        ddp.load_state_dict(saved["model"])
        adam.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        epoch = saved["epoch"]
    while epoch < epochs:
        sampler.set_epoch(epoch)
        total = 0.0
        for x, y in loader:
            adam.zero_grad()
            loss = nn.functional.mse_loss(ddp(x), y)
            loss.backward()
            adam.step()
            total += loss.item()
        scheduler.step()
        epoch += 1
        if rank == 0:
            torch.save(
                {
                    "model": ddp.state_dict(),
                    "optimizer": adam.state_dict(),
                    "scheduler": scheduler.state_dict(),
                    "epoch": epoch,
                },
                path,
            )
        dist.barrier()
        if rank == 0:
            print(f"{path}, epoch {epoch}: {total:.4f}")
    return total


def run(rank):
    for path in ("whole.pt", "parts.pt"):
        if rank == 0 and os.path.exists(path):
            os.remove(path)
    dist.barrier()
    whole = train(rank, "whole.pt", 3)
    train(rank, "parts.pt", 1)
    parts = train(rank, "parts.pt", 3)
    assert parts == whole, "the resumed run differs"
    if rank == 0:
        print("the resumed run has the same losses")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run(dist.get_rank())
    dist.destroy_process_group()
