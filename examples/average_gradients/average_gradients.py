# The same as average_gradients.cc, with PyTorch, on MNIST's t10k files:
#
#   torchrun --nproc-per-node=2 average_gradients.py FOLDER
import gzip
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def read(name, header):
    with gzip.open(f"{sys.argv[1]}/{name}.gz") as file:
        return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)


def average_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)
        parameter.grad /= dist.get_world_size()


def run(rank, size):
    torch.manual_seed(0)
    images = read("t10k-images-idx3-ubyte", 16).view(-1, 784)
    images = (images / 255 - 0.1307) / 0.3081
    dataset = TensorDataset(images, read("t10k-labels-idx1-ubyte", 8).long())
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=128 // size, sampler=sampler)
    model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    sgd = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        epoch_loss = 0.0
        for x, y in loader:
            sgd.zero_grad()
            loss = F.cross_entropy(model(x), y)
            epoch_loss += loss.item()
            loss.backward()
            average_gradients(model)
            sgd.step()
        epoch_loss /= len(loader)
        print(f"[{rank}] epoch {epoch}: {epoch_loss:.3f}")
    assert epoch_loss < 1, "it has not learnt"


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run(dist.get_rank(), dist.get_world_size())
    dist.destroy_process_group()
