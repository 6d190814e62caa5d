# The same as ddp_cifar.cc, with PyTorch. On CPUs its batch norms are those of
# each rank: PyTorch's SyncBatchNorm needs GPUs.
#
#   torchrun --nproc-per-node=2 ddp_cifar.py FOLDER
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EPOCHS = 5


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3)
        self.bn2 = nn.BatchNorm2d(32)
        self.pool = nn.MaxPool2d(3)
        self.fc = nn.Linear(32 * 2 * 2, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        x = self.pool(F.relu(self.bn2(self.conv2(x))))
        return self.fc(x.flatten(1))


def read(*names):
    data = b"".join(open(f"{sys.argv[1]}/{name}.bin", "rb").read() for name in names)
    rows = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(-1, 3073)
    images = rows[:, 1:].view(-1, 3, 32, 32) / 255
    return TensorDataset((images - 0.473) / 0.251, rows[:, 0].long())


@torch.no_grad()
def accuracy_of(ddp, loader, device):
    ddp.eval()
    hits, seen = torch.zeros(1).to(device), torch.zeros(1).to(device)
    for x, y in loader:
        hits += (ddp(x.to(device)).argmax(1) == y.to(device)).sum()
        seen += len(y)
    dist.all_reduce(hits)
    dist.all_reduce(seen)
    ddp.train()
    return (hits / seen).item()


def run(rank, device):
    train_set = read(*(f"data_batch_{i}" for i in range(1, 6)))
    sampler = DistributedSampler(train_set)
    train = DataLoader(train_set, batch_size=16, sampler=sampler)
    test_set = read("test_batch")
    test = DataLoader(test_set, batch_size=50,
                      sampler=DistributedSampler(test_set, shuffle=False))
    model = ConvNet().to(device)
    if device.type == "cuda":
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    ddp = DDP(model)
    sgd = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    scheduler = CosineAnnealingLR(sgd, EPOCHS)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for x, y in train:
            sgd.zero_grad()
            loss = F.cross_entropy(ddp(x.to(device)), y.to(device))
            loss.backward()
            sgd.step()
        scheduler.step()
        accuracy = accuracy_of(ddp, test, device)
        if rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.3f}, "
                  f"accuracy {100 * accuracy:.1f}%")
    assert accuracy > 0.4, "it has not learnt"


if __name__ == "__main__":
    cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if cuda else "gloo")
    rank = dist.get_rank()
    run(rank, torch.device("cuda", rank) if cuda else torch.device("cpu"))
    dist.destroy_process_group()
