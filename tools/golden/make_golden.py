"""Writes the golden values of tests/golden/ with PyTorch.

    python3 tools/golden/make_golden.py tests/golden

Needs PyTorch (any recent release, CPU is enough); neither the build nor the
tests do. Inputs and initial parameters are not stored: both sides compute them
by formula() of golden_values.py, GoldenInput() of tests/golden/golden_file.h.
docs/numerics.md describes the files.
"""

import sys

import torch
import torch.nn.functional as F

from golden_values import (DTYPES, IGNORED_LABEL, formula, labels,
                           write_safetensors)

STORED_MAX = 2048  # limit on the stored elements of a network's tensor

# --- ops ---------------------------------------------------------------------

WINDOW = dict(kernel=[2, 2], stride=[2, 2], pad=[0, 0])
OPS = [
    dict(name="linear", op="linear", x=[7, 13], out=5, bias=True),
    dict(name="linear_no_bias", op="linear", x=[3, 20], out=9, bias=False),
    dict(name="conv", op="conv2d", x=[2, 3, 8, 7], out=4, kernel=[3, 3],
         stride=[1, 1], pad=[0, 0], bias=True),
    dict(name="conv_same", op="conv2d", x=[2, 2, 6, 5], out=3, kernel=[3, 3],
         stride=[1, 1], pad=[1, 1], bias=False),
    dict(name="conv_uneven", op="conv2d", x=[2, 3, 9, 10], out=4,
         kernel=[3, 2], stride=[2, 3], pad=[1, 0], bias=True),
    dict(name="max_pool", op="max_pool2d", x=[2, 3, 6, 8], **WINDOW),
    dict(name="max_pool_overlap", op="max_pool2d", x=[2, 3, 7, 8],
         kernel=[3, 3], stride=[2, 2], pad=[1, 1]),
    dict(name="avg_pool", op="avg_pool2d", x=[2, 3, 6, 8], **WINDOW),
    dict(name="avg_pool_overlap", op="avg_pool2d", x=[2, 3, 7, 8],
         kernel=[3, 3], stride=[2, 2], pad=[1, 1]),
    dict(name="relu", op="relu", x=[50]),
    dict(name="cross_entropy", op="cross_entropy", x=[13, 10], scale=4.0),
    dict(name="cross_entropy_sharp", op="cross_entropy", x=[6, 5],
         scale=256.0),
    dict(name="mse", op="mse", x=[6, 5]),
]
SGD = dict(op="sgd", n=37, steps=4, lr=0.1, momentum=0.0, dampening=0.0,
           weight_decay=0.0, nesterov=False)
OPS += [
    dict(SGD, name="sgd"),
    dict(SGD, name="sgd_decay", weight_decay=0.05),
    dict(SGD, name="sgd_momentum", momentum=0.9),
    dict(SGD, name="sgd_dampening", momentum=0.9, dampening=0.3,
         weight_decay=0.05),
    dict(SGD, name="sgd_nesterov", momentum=0.9, nesterov=True,
         weight_decay=0.05),
]


def run_op(c, x, w, b):
    if c["op"] == "linear":
        return F.linear(x, w, b)
    if c["op"] == "conv2d":
        return F.conv2d(x, w, b, stride=c["stride"], padding=c["pad"])
    if c["op"] == "max_pool2d":
        return F.max_pool2d(x, c["kernel"], c["stride"], c["pad"])
    if c["op"] == "avg_pool2d":
        return F.avg_pool2d(x, c["kernel"], c["stride"], c["pad"])
    return F.relu(x)


def make_plain_op(c, dtype, out):
    """Runs forward, and backward from a given gradient of the output."""
    name = c["name"]
    x = formula(name + "/x", c["x"], 1.0, dtype).requires_grad_()
    w = b = None
    if "out" in c:
        shape = [c["out"], c["x"][1]] + c.get("kernel", [])
        w = formula(name + "/w", shape, 1.0, dtype).requires_grad_()
        if c["bias"]:
            b = formula(name + "/b", [c["out"]], 1.0, dtype).requires_grad_()
    y = run_op(c, x, w, b)
    y.backward(formula(name + "/dy", list(y.shape), 1.0, dtype))
    out[name + "/y"] = y
    out[name + "/dx"] = x.grad
    if w is not None:
        out[name + "/dw"] = w.grad
    if b is not None:
        out[name + "/db"] = b.grad


def make_loss(c, dtype, out):
    name = c["name"]
    x = formula(name + "/x", c["x"], c.get("scale", 1.0), dtype)
    x.requires_grad_()
    if c["op"] == "mse":
        target = formula(name + "/target", c["x"], 1.0, dtype)
        loss = F.mse_loss(x, target, reduction="sum")
        stats = [loss.item(), x.numel(), 0]
    else:
        target = labels(name + "/target", *c["x"], ignore_fifth=True)
        loss = F.cross_entropy(x, target, reduction="sum",
                               ignore_index=IGNORED_LABEL)
        counted = target != IGNORED_LABEL
        right = (x.argmax(1) == target) & counted
        stats = [loss.item(), counted.sum().item(), right.sum().item()]
    loss.backward()
    out[name + "/stats"] = torch.tensor(stats, dtype=torch.float64)
    out[name + "/dx"] = x.grad


def make_sgd(c, dtype, out):
    name = c["name"]
    p = formula(name + "/p", [c["n"]], 1.0, dtype).requires_grad_()
    options = {k: c[k] for k in
               ("lr", "momentum", "dampening", "weight_decay", "nesterov")}
    optimizer = torch.optim.SGD([p], foreach=False, **options)
    trajectory = []
    for step in range(c["steps"]):
        p.grad = formula(f"{name}/g{step}", [c["n"]], 1.0, dtype)
        optimizer.step()
        trajectory.append(p.detach().clone())
    out[name + "/p"] = torch.stack(trajectory)


def make_ops(folder, dtype_name):
    out = {}
    for c in OPS:
        if c["op"] == "sgd":
            make_sgd(c, DTYPES[dtype_name], out)
        elif c["op"] in ("cross_entropy", "mse"):
            make_loss(c, DTYPES[dtype_name], out)
        else:
            make_plain_op(c, DTYPES[dtype_name], out)
    write_safetensors(f"{folder}/ops_{dtype_name}.safetensors", out,
                      {"cases": OPS})


# --- the two networks of PyTorch's tutorials -----------------------------------


def mlp():
    nn = torch.nn
    return nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 5))


def cnn():
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
        nn.Linear(84, 10))


NETWORKS = {
    "mlp": dict(make=mlp, x=[20, 10], loss="mse", lr=0.0625),
    "cnn": dict(make=cnn, x=[16, 3, 32, 32], loss="cross_entropy", lr=0.015625),
}
MOMENTUM = 0.9
STEPS = 10


def scale_of(model, parameter_name):
    """Returns the power of two below PyTorch's bound 1 / sqrt(fan_in)."""
    layer = model[int(parameter_name.split(".")[0])]
    fan_in = layer.weight[0].numel()
    scale = 1.0
    while scale * scale * fan_in > 1:
        scale /= 2
    return scale


def store(out, key, tensor):
    """Stores all elements of a small tensor, or evenly spaced ones of a large
    one, with the norm and the largest magnitude of the whole."""
    flat = tensor.detach().flatten()
    count = flat.numel()
    if count > STORED_MAX:
        picks = [i * count // STORED_MAX for i in range(STORED_MAX)]
        out[key] = flat[picks].clone()
    else:
        out[key] = flat.clone()
    wide = flat.double()
    out[key + "#whole"] = torch.stack([wide.norm(), wide.abs().max()])


def make_network(folder, net, dtype_name):
    spec = NETWORKS[net]
    dtype = DTYPES[dtype_name]
    model = spec["make"]().to(dtype)
    parameters = []
    for name, p in model.named_parameters():
        scale = scale_of(model, name)
        parameters.append(dict(name=name, shape=list(p.shape), scale=scale))
        with torch.no_grad():
            p.copy_(formula(f"{net}/{name}", list(p.shape), scale, dtype))
    x = formula(f"{net}/x", spec["x"], 1.0, dtype)
    if spec["loss"] == "mse":
        target = formula(f"{net}/target", [20, 5], 1.0, dtype)
        loss_fn = F.mse_loss
    else:
        target = labels(f"{net}/target", spec["x"][0], 10, ignore_fifth=False)
        loss_fn = F.cross_entropy
    optimizer = torch.optim.SGD(model.parameters(), lr=spec["lr"],
                                momentum=MOMENTUM, foreach=False)
    out = {}
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        y = model(x)
        loss = loss_fn(y, target)
        losses.append(loss.item())
        loss.backward()
        if step == 0:
            store(out, "output", y)
            for name, p in model.named_parameters():
                store(out, "grad/" + name, p.grad)
        optimizer.step()
    losses.append(loss_fn(model(x), target).item())
    for name, p in model.named_parameters():
        store(out, "final/" + name, p)
    out["losses"] = torch.tensor(losses, dtype=torch.float64)
    described = dict(x=spec["x"], loss=spec["loss"], lr=spec["lr"],
                     momentum=MOMENTUM, steps=STEPS, parameters=parameters)
    write_safetensors(f"{folder}/{net}_{dtype_name}.safetensors", out,
                      described)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for dtype_name in DTYPES:
        make_ops(sys.argv[1], dtype_name)
        for net in NETWORKS:
            make_network(sys.argv[1], net, dtype_name)


if __name__ == "__main__":
    main()
