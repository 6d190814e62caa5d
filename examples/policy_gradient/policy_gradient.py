# The same as policy_gradient.cc, with PyTorch:
#
#   torchrun --nproc-per-node=2 policy_gradient.py
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

WALKERS, MOVES, CELLS, ROUNDS, EPOCHS = 32, 16, 8, 30, 4


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(1, 16)
        self.out = nn.Linear(16, 2)

    def forward(self, x):
        return torch.log_softmax(self.out(torch.tanh(self.hidden(x))), -1)


def log_probability(log_probs, right):
    """The log-probability of the moves that were made: 1 is right, 0 is left."""
    return torch.where(right, log_probs[:, 1:2], log_probs[:, 0:1])


def run(rank, size):
    torch.manual_seed(0)
    policy = Policy()
    ddp = DDP(policy)
    torch.manual_seed(1 + rank)
    adam = torch.optim.Adam(ddp.parameters(), lr=0.01)
    for step in range(ROUNDS):
        # Plays.
        places, moves, before, rewards = [], [], [], []
        returns = [None] * MOVES
        with torch.no_grad():
            place = torch.zeros(WALKERS, 1)
            for _ in range(MOVES):
                log_probs = policy(place / CELLS)
                right = torch.rand(WALKERS, 1) < log_probs[:, 1:2].exp()
                places.append(place / CELLS)
                moves.append(right)
                before.append(log_probability(log_probs, right))
                place = (place + 2 * right.float() - 1).clamp(0, CELLS - 1)
                rewards.append(place / CELLS)
            later = torch.zeros(WALKERS, 1)
            for i in reversed(range(MOVES)):
                later = returns[i] = rewards[i] + 0.95 * later
            paid = torch.cat(rewards).mean() * MOVES
            dist.all_reduce(paid)
            paid = paid.item() / size
        if rank == 0 and step % 10 == 0:
            print(f"round {step}: paid {paid:.2f}")
        # Learns.
        place, right = torch.cat(places), torch.cat(moves)
        old, total = torch.cat(before), torch.cat(returns)
        advantage = total - total.mean()
        for _ in range(EPOCHS):
            adam.zero_grad()
            ratio = (log_probability(ddp(place), right) - old).exp()
            bounded = torch.where(
                advantage > 0, ratio.clamp(max=1.2), ratio.clamp(min=0.8)
            )
            (-(bounded * advantage).mean()).backward()
            adam.step()
    if rank == 0:
        print(f"a walker is paid {paid:.2f}")
    assert paid > 9, "it has not learnt"


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run(dist.get_rank(), dist.get_world_size())
    dist.destroy_process_group()
