# The same as ddp_mnist.cc, with PyTorch. The folder has MNIST's t10k files.
#
#   torchrun --nproc-per-node=2 ddp_mnist.py FOLDER
#   torchrun --nproc-per-node=2 ddp_mnist.py FOLDER --device=cuda
import argparse
import gzip
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 5)
        self.pool = nn.MaxPool2d(4)
        self.fc = nn.Linear(16 * 6 * 6, 10)

    def forward(self, x):
        return self.fc(self.pool(F.relu(self.conv(x))).flatten(1))


def read(folder, name, header):
    with gzip.open(f"{folder}/{name}.gz") as file:
        return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)


def run(rank, folder, device):
    images = read(folder, "t10k-images-idx3-ubyte", 16).view(-1, 1, 28, 28)
    images = (images / 255 - 0.1307) / 0.3081
    labels = read(folder, "t10k-labels-idx1-ubyte", 8).long()
    train_set = TensorDataset(images[:8000], labels[:8000])
    test_set = TensorDataset(images[8000:], labels[8000:])
    train = DataLoader(train_set, batch_size=32,
                       sampler=DistributedSampler(train_set))
    test = DataLoader(test_set, batch_size=100,
                      sampler=DistributedSampler(test_set, shuffle=False))
    ddp = DDP(ConvNet().to(device))
    adam = torch.optim.Adam(ddp.module.fc.parameters(), lr=5e-3)
    for step, (x, y) in enumerate(train, 1):
        x, y = x.to(device), y.to(device)
        ddp.zero_grad()
        loss = F.cross_entropy(ddp(x), y)
        loss.backward()
        adam.step()
        if step % 25 == 0 and rank == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    hits = torch.zeros(1, device=device)
    with torch.no_grad():
        for x, y in test:
            hits += (ddp(x.to(device)).argmax(1) == y.to(device)).sum()
    dist.all_reduce(hits)
    accuracy = hits.item() / len(test_set)
    if rank == 0:
        print(f"accuracy {100 * accuracy:.1f}%")
    assert accuracy > 0.75, "it has not learnt"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    if args.device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if args.device == "cuda" else "gloo")
    run(dist.get_rank(), args.folder, args.device)
    dist.destroy_process_group()
