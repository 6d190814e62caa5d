"""Writes tests/golden/loop_{f32,f64}.safetensors with PyTorch.

    python3 tools/golden/make_loop.py tests/golden

The program is that of tests/nn/autograd/var_loop_test.cc, line by line: a
training loop by hand with a model of its own. Stored are the loss of each step,
and a number that it computes without gradients.
"""

import sys

import torch
import torch.nn.functional as F

from golden_values import DTYPES, formula, labels, write_safetensors

STEPS = 8


class Gated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(8, 12)
        self.fc2 = torch.nn.Linear(6, 4)
        self.gain = torch.nn.Parameter(torch.empty(6))

    def forward(self, x):
        h = self.fc1(x)
        h = torch.tanh(h[:, :6]) * torch.sigmoid(h[:, 6:]) * self.gain
        h = h * torch.rsqrt((h ** 2).mean(-1, keepdim=True) + 1e-3)
        return self.fc2(h)


def make_loop(folder, dtype_name):
    dtype = DTYPES[dtype_name]
    model = Gated().to(dtype)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(formula(f"loop/{name}", list(p.shape), 0.5, dtype))
    x = formula("loop/x", [12, 8], 1.0, dtype)
    y = labels("loop/y", 12, 4, ignore_fifth=True)
    sgd = torch.optim.SGD(model.parameters(), lr=0.25, momentum=0.5,
                          foreach=False)
    losses, largest = [], []
    for _ in range(STEPS):
        sgd.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss = loss + 0.125 * (model.gain - 1).abs().mean()
        loss.backward()
        sgd.step()
        losses.append(loss.item())
        with torch.no_grad():
            largest.append(model(x).amax().item())
    out = {"losses": torch.tensor(losses, dtype=torch.float64),
           "largest": torch.tensor(largest, dtype=torch.float64)}
    write_safetensors(f"{folder}/loop_{dtype_name}.safetensors", out,
                      {"steps": STEPS})


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for dtype_name in DTYPES:
        make_loop(sys.argv[1], dtype_name)


if __name__ == "__main__":
    main()
