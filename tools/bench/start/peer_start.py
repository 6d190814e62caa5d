"""The peer of the start benchmark: runs one step of a LeNet with PyTorch's DDP
over Gloo; torchrun starts it."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

GLOBAL_BATCH = 64


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    batch = GLOBAL_BATCH // dist.get_world_size()
    model = DistributedDataParallel(nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 84), nn.ReLU(), nn.Linear(84, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    inputs = torch.randn(batch, 1, 28, 28)
    targets = torch.arange(batch) % 10
    nn.functional.cross_entropy(model(inputs), targets).backward()
    optimizer.step()
    if dist.get_rank() == 0:
        print("step 1", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
