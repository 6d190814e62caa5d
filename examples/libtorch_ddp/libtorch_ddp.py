# The same as libtorch_ddp.cc, with PyTorch's DDP over Gloo:
#
#   torchrun --nproc-per-node=2 libtorch_ddp.py --model=resnet18 --steps=20
#
# And a check of the gradients that libtorch_ddp.cc has saved, by one process
# with the whole batch:
#
#   python3 libtorch_ddp.py --model=resnet18 --check=step.pt
import argparse
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.jit._pickle
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def mlp():
    return nn.Sequential(nn.Linear(784, 2048), nn.ReLU(),
                         nn.Linear(2048, 2048), nn.ReLU(),
                         nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10))


def conv(channels_in, channels_out, size, stride):
    return nn.Conv2d(channels_in, channels_out, size, stride,
                     padding=size // 2, bias=False)


class BasicBlock(nn.Module):
    def __init__(self, channels_in, channels_out, stride):
        super().__init__()
        self.conv1 = conv(channels_in, channels_out, 3, stride)
        self.bn1 = nn.BatchNorm2d(channels_out)
        self.conv2 = conv(channels_out, channels_out, 3, 1)
        self.bn2 = nn.BatchNorm2d(channels_out)
        self.downsample = None
        if stride != 1 or channels_in != channels_out:
            self.downsample = nn.Sequential(
                conv(channels_in, channels_out, 1, stride),
                nn.BatchNorm2d(channels_out))

    def forward(self, x):
        y = self.bn1(self.conv1(x)).relu_()
        y = self.bn2(self.conv2(y))
        return y.add_(self.downsample(x) if self.downsample else x).relu_()


class ResNet18(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = conv(3, 64, 7, 2)
        self.bn1 = nn.BatchNorm2d(64)
        channels = 64
        for i in range(4):
            out = 64 << i
            setattr(self, f"layer{i + 1}", nn.Sequential(
                BasicBlock(channels, out, 1 if i == 0 else 2),
                BasicBlock(out, out, 1)))
            channels = out
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = F.max_pool2d(self.bn1(self.conv1(x)).relu_(), 3, 2, 1)
        for i in range(4):
            x = getattr(self, f"layer{i + 1}")(x)
        return self.fc(x.mean((2, 3)))


# Model, shape of a sample, samples per rank.
MODELS = {"mlp": (mlp, (784,), 64), "resnet18": (ResNet18, (3, 64, 64), 16)}


def train(model, sample, batch, steps):
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    x = torch.randn(size * batch, *sample).chunk(size)[rank]
    y = torch.randint(10, (size * batch,)).chunk(size)[rank]
    ddp = DDP(model, bucket_cap_mb=25)
    sgd = torch.optim.SGD(model.parameters(), lr=0.01)
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        sgd.zero_grad()
        loss = F.cross_entropy(ddp(x), y)
        loss.backward()
        sgd.step()
        value = loss.item()
        times.append(1000 * (time.perf_counter() - begin))
    if rank == 0:
        print(f"loss {value:.4f}, median step "
              f"{statistics.median(times[1:]):.2f} ms")
    dist.destroy_process_group()


# Prints the largest difference between the saved gradients and those of one
# process with the whole batch, as a part of the largest gradient of its
# parameter. A model with batch norms, which DDP does not synchronise, gets the
# whole batch in the parts that the ranks had.
def check(model, path, parts):
    with torch.serialization.safe_globals([torch.jit._pickle.restore_type_tag]):
        saved = torch.load(path)  # a c10::Dict
    x, y = saved["x"], saved["y"]
    for name, parameter in model.named_parameters():
        parameter.data.copy_(saved[f"value of {name}"])
    for part, labels in zip(x.chunk(parts), y.chunk(parts)):
        (F.cross_entropy(model(part), labels) / parts).backward()
    worst, of = max(
        (((p.grad - saved[f"grad of {name}"]).abs().max()
          / p.grad.abs().max()).item(), name)
        for name, p in model.named_parameters())
    print(f"gradients differ by {worst:.2g} at most, of {of}")
    return worst


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, default="mlp")
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--check")
    parser.add_argument("--ranks", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    make, sample, batch = MODELS[args.model]
    if args.check:
        parts = args.ranks if args.model == "resnet18" else 1
        sys.exit(check(make(), args.check, parts) > 1e-6)
    train(make(), sample, args.batch or batch, args.steps)
