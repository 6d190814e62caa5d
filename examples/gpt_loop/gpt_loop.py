# The same as gpt_loop.cc, with PyTorch:
#
#   torchrun --nproc-per-node=2 gpt_loop.py
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

CONTEXT, STEPS = 32, 201


class Windows(Dataset):
    def __init__(self, tokens):
        self.tokens = tokens

    def __len__(self):
        return (len(self.tokens) - 1) // CONTEXT

    def __getitem__(self, i):
        part = self.tokens[i * CONTEXT : (i + 1) * CONTEXT + 1]
        return part[:-1], part[1:]


class GPT(nn.Module):
    def __init__(self, vocabulary, layers=3, heads=3, width=48):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(CONTEXT, width)
        nn.init.normal_(self.wte.weight, std=0.02)
        block = nn.TransformerEncoderLayer(
            width, heads, 4 * width, 0, "gelu", batch_first=True, norm_first=True
        )
        self.h = nn.TransformerEncoder(block, layers, nn.LayerNorm(width))
        self.register_buffer("mask", torch.triu(torch.ones(CONTEXT, CONTEXT), 1) > 0)

    def forward(self, x):
        t = x.shape[1]
        x = self.wte(x) + self.wpe.weight[:t]
        return self.h(x, self.mask[:t, :t]) @ self.wte.weight.T


@torch.no_grad()
def write(model, chars, text, tokens=60, temperature=0.8):
    """Lets the model go on from `text`."""
    model.eval()
    for _ in range(tokens):
        x = torch.tensor([[chars.index(c) for c in text[-CONTEXT:]]])
        p = (model(x)[0, -1] / temperature).softmax(-1)
        text += chars[torch.multinomial(p, 1)]
    model.train()
    return text


def run(rank):
    with open(nn.modules.transformer.__file__, encoding="utf-8") as source:
        text = source.read()
    chars = sorted(set(text))
    torch.manual_seed(0)
    model = GPT(len(chars))
    ddp = DDP(model)
    adam = torch.optim.Adam(ddp.parameters(), lr=0.003)
    data = Windows(torch.tensor([chars.index(c) for c in text]))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    step = 0
    for epoch in range(STEPS // len(loader) + 1):
        sampler.set_epoch(epoch)
        for x, y in loader:
            adam.zero_grad()
            loss = F.cross_entropy(ddp(x).flatten(0, 1), y.flatten())
            loss.backward()
            adam.step()
            if step % 100 == 0:
                dist.all_reduce(loss.detach(), dist.ReduceOp.AVG)
                if rank == 0:
                    print(f"step {step}: loss {loss.item():.2f}")
                    print(write(model, chars, "return "))
            step += 1
            if step == STEPS:
                break
    assert loss < 2.7, "it has not learnt"


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run(dist.get_rank())
    dist.destroy_process_group()
