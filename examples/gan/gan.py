# The same as gan.cc, with PyTorch:
#
#   torchrun --nproc-per-node=2 gan.py
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

BATCH, NOISE, STEPS = 64, 4, 600


class Net(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.hidden = nn.Linear(inputs, 32)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x)))


def run(rank, size):
    torch.manual_seed(0)
    net_g, net_d = DDP(Net(NOISE)), DDP(Net(1))
    torch.manual_seed(1 + rank)
    adam_g = torch.optim.Adam(net_g.parameters(), lr=0.005, betas=(0.5, 0.999))
    adam_d = torch.optim.Adam(net_d.parameters(), lr=0.005, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    real_label = torch.ones(BATCH, 1)
    fake_label = torch.zeros(BATCH, 1)
    for step in range(STEPS):
        # The discriminator, on real samples and on the generator's.
        adam_d.zero_grad()
        real = 4 + 0.5 * torch.randn(BATCH, 1)
        with torch.no_grad():
            fake = net_g(torch.randn(BATCH, NOISE))
        # One forward for both: DDP reduces in the backward of the last one.
        both = net_d(torch.cat([real, fake]))
        loss_d = criterion(both[:BATCH], real_label) + criterion(
            both[BATCH:], fake_label
        )
        loss_d.backward()
        adam_d.step()
        # The generator, through the discriminator.
        adam_g.zero_grad()
        drawn = net_g(torch.randn(BATCH, NOISE))
        loss_g = criterion(net_d(drawn), real_label)
        loss_g.backward()
        adam_g.step()
        if rank == 0 and step % 100 == 0:
            print(
                f"step {step}: loss of the discriminator {loss_d.item():.3f}, "
                f"of the generator {loss_g.item():.3f}"
            )
    with torch.no_grad():
        mean = net_g(torch.randn(1000, NOISE)).mean()
    dist.all_reduce(mean)
    mean /= size
    if rank == 0:
        print(f"the generator's numbers have mean {mean.item():.2f}")
    assert abs(mean.item() - 4) < 0.6, "it has not learnt"


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run(dist.get_rank(), dist.get_world_size())
    dist.destroy_process_group()
