"""Prints the losses of tests/actors/jobs/sampling_job_test.cc.

Needs PyTorch: python3 tests/actors/jobs/golden_short_batches.py

A perceptron in f64 on 23 samples in batches of 10, with the last, short batch of
an epoch kept (DataLoader's drop_last=False).
"""

import torch
from torch.utils.data import DataLoader, TensorDataset

SAMPLES, IN, HIDDEN, CLASSES, STEPS = 23, 5, 4, 3, 8

x = torch.tensor([[(7 * i + 3 * j) % 11 / 11 for j in range(IN)]
                  for i in range(SAMPLES)], dtype=torch.float32).double()
labels = torch.tensor([(i * i + i // 3) % CLASSES for i in range(SAMPLES)])
model = torch.nn.Sequential(torch.nn.Linear(IN, HIDDEN), torch.nn.ReLU(),
                            torch.nn.Linear(HIDDEN, CLASSES)).double()
for name, parameter in model.named_parameters():
    torch.nn.init.constant_(parameter, 0 if "bias" in name else 0.125)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
losses = []
while len(losses) < STEPS:
    for inputs, targets in DataLoader(TensorDataset(x, labels), batch_size=10,
                                      shuffle=False, drop_last=False):
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(",\n".join(repr(loss) for loss in losses[:STEPS]))
