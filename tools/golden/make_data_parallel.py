"""Writes tests/golden/data_parallel_f64.safetensors with PyTorch.

    python3 tools/golden/make_data_parallel.py tests/golden

torch.nn.DataParallel takes GPUs alone. Here a model does on a CPU what it does:
each batch is cut by torch.chunk(), each part goes through the model with buffers
of its own, of which the first part's are kept, and the outputs are concatenated.
tests/troupe/data_parallel_parity_test.cc trains the same with DataParallel.
"""

import sys

import torch

from golden_values import formula, write_safetensors

DEVICES = 4
RULES = {
    "sgd": lambda ps: torch.optim.SGD(ps, lr=0.05, momentum=0.9,
                                      weight_decay=0.01, foreach=False),
    "adamw": lambda ps: torch.optim.AdamW(ps, lr=0.01, weight_decay=0.01,
                                          foreach=False),
}

# `batches`: the samples of each backward; `backwards`: their number in a step.
CASES = [
    dict(name="plain", batches=[30, 30, 5, 1, 30, 4]),
    dict(name="batch_norm", batches=[30, 6, 30, 8], norm=True),
    dict(name="accumulated", batches=[30, 5, 30, 30], backwards=2),
    dict(name="kept_gradients", batches=[30, 5, 30], keeps=True),
    dict(name="penalty", batches=[30, 30, 3], penalty=0.125),
    dict(name="two_forwards", batches=[30, 5, 30], twice=True),
    dict(name="two_models", batches=[30, 5, 30], head=True),
    dict(name="frozen_head", batches=[30, 5, 30], head=True, frozen=True),
]


def make_model(name, sizes, norm):
    model = torch.nn.Sequential()
    model.add_module("first", torch.nn.Linear(sizes[0], sizes[1]))
    model.add_module("tanh", torch.nn.Tanh())
    if norm:
        model.add_module("norm", torch.nn.BatchNorm1d(sizes[1]))
    model.add_module("last", torch.nn.Linear(sizes[1], sizes[2]))
    model.double()
    with torch.no_grad():
        for key, p in model.named_parameters():
            p.copy_(formula(f"dp/{name}/{key}", list(p.shape), 0.5, p.dtype))
    return model


def parallel(model, x):
    parts = torch.chunk(x, DEVICES)
    copies = [{key: b.clone() for key, b in model.named_buffers()}
              for _ in parts[1:]]
    outputs = [model(parts[0])]
    for part, buffers in zip(parts[1:], copies):
        outputs.append(torch.func.functional_call(model, buffers, (part,)))
    return torch.cat(outputs)


def train(case, make_optimizer):
    """Returns the tensors to store."""
    tensors = {}
    models = {"model": make_model("model", [6, 8, 4], case.get("norm"))}
    if "head" in case:
        models["head"] = make_model("head", [4, 5, 4], None)
        models["head"].requires_grad_("frozen" not in case)
    trained = {name: m for name, m in models.items()
               if name == "model" or "frozen" not in case}
    optimizers = [make_optimizer(m.parameters()) for m in trained.values()]
    backwards = case.get("backwards", 1)
    for i, batch in enumerate(case["batches"]):
        if i % backwards == 0 and not case.get("keeps"):
            for optimizer in optimizers:
                optimizer.zero_grad()
        x = formula(f"dp/x{i}", [batch, 6], 1.0, torch.float64)
        y = formula(f"dp/y{i}", [batch, 4], 1.0, torch.float64)
        output = parallel(models["model"], x)
        if "head" in case:
            output = parallel(models["head"], output)
        if "twice" in case:
            output = output + parallel(models["model"], x * 0.5)
        loss = torch.nn.functional.mse_loss(output, y)
        for p in models["model"].parameters():
            loss = loss + case.get("penalty", 0) * (p * p).sum()
        loss.backward()
        tensors[f"output{i}"] = output.detach().clone()
        if i + 1 == len(case["batches"]):
            for name, model in trained.items():
                for key, p in model.named_parameters():
                    tensors[f"gradient/{name}.{key}"] = p.grad.clone()
        if (i + 1) % backwards == 0:
            for optimizer in optimizers:
                optimizer.step()
    for name, model in models.items():
        for key, p in model.named_parameters():
            tensors[f"{name}.{key}"] = p.detach().clone()
        for key, b in model.named_buffers():
            tensors[f"{name}.{key}"] = b.double()
    return tensors


def main():
    torch.set_num_threads(1)
    tensors = {}
    for case in CASES:
        for rule, make_optimizer in RULES.items():
            for key, tensor in train(case, make_optimizer).items():
                tensors[f"{case['name']}/{rule}/{key}"] = tensor
    write_safetensors(f"{sys.argv[1]}/data_parallel_f64.safetensors", tensors,
                      dict(devices=DEVICES, cases=CASES))


if __name__ == "__main__":
    main()
