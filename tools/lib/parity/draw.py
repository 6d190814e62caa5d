"""Draws a case from a seed: a configuration of the trainer, under its own keys,
and the phases between which the run stops and goes on under another mesh.

    case = draw_case(17)
    case["config"]["optimizer"]     # {"kind": "adamw", "lr": 0.001, ...}
    case["phases"]                  # [{"until": 3, "mesh": {"dp": 2}, ...}, ...]

A case is plain data. What a draw may have follows from these functions;
coverage.py compares it with what the trainer knows.
"""

import math
import random

import torch

from parity.layers import draw_layers
from parity.network import Network

STEPS = 5
ATTEMPTS_MAX = 200  # draws of a seed whose layers do not fit together

# Precision, device, and how often.
DTYPES = [("f64", "reference:0", 4), ("f32", "cpu:0", 3),
          ("f32", "reference:0", 1), ("bf16", "cpu:0", 1), ("f16", "cpu:0", 1)]

# mesh.schedule, and the chunks that a rank has under it.
SCHEDULES = {"auto": 1, "gpipe": 1, "1f1b": 1, "interleaved_1f1b": 2,
             "breadth_first": 2, "zb_h1": 1, "zb_h2": 1, "zb_v": 2,
             "dualpipe_v": 2, "v_half": 2, "v_min": 2, "search": 1}

MESHES = [(1, 1), (1, 1), (1, 1), (2, 1), (2, 1), (3, 1), (1, 2), (1, 2),
          (1, 2), (1, 3), (2, 2)]  # (dp, pp)


class DoesNotFit(Exception):
    """The parts of a draw exclude each other."""


def draw_case(seed, precision=None):
    """`precision`: None, or the one to draw."""
    for attempt in range(ATTEMPTS_MAX):
        rng = random.Random("%d/%d" % (seed, attempt))
        try:
            return draw_once(rng, precision)
        except (DoesNotFit, ValueError, RuntimeError):
            continue  # PyTorch refuses the layers
    raise DoesNotFit("none of %d draws of seed %d" % (ATTEMPTS_MAX, seed))


def draw_once(rng, precision):
    shape, classes, data = draw_data(rng)
    vocabulary = data.get("vocab_size", 0)
    outputs = classes or data["target_dim"]

    def features_of(layers):
        return Network([*layers, "flatten"], shape).outputs

    layers = draw_layers(rng, shape, outputs, vocabulary, features_of)
    network = Network(layers, shape)
    names = [name for name, _ in network.named_parameters()]
    loss = draw_loss(rng, classes)
    case = {"sample_shape": shape, "steps": STEPS, "config": {
        "model": draw_model(rng, layers, names, network.has_batch_norm()),
        "data": data,
        "train": draw_train(rng, precision),
        "loss": loss,
        "optimizer": draw_optimizer(rng, names, loss),
        "comm": draw_comm(rng)}}
    case["phases"] = draw_phases(rng, case, network.has_batch_norm())
    return case


def draw_data(rng):
    """Shape of a sample, number of classes (0: targets are numbers), keys."""
    kind = rng.choice(["vector", "vector", "image", "image", "tokens"])
    data = {"seed": rng.randrange(1000), "test_count": rng.randint(1, 7)}
    if kind == "tokens":
        vocabulary, context = rng.choice([5, 11, 20]), rng.randint(2, 6)
        data.update(kind="tokens", context=context, vocab_size=vocabulary,
                    window=rng.choice(["random", "sequential"]))
        return [context], vocabulary, data
    shape = [rng.randint(2, 12)]
    if kind == "image":
        shape = [rng.randint(3, 9), rng.randint(3, 9), rng.randint(1, 4)]
    classes = rng.randint(2, 5) if rng.random() < 0.5 else 0
    data.update(kind="synthetic", input_shape=shape, num_classes=classes)
    if not classes:
        data["target_dim"] = rng.randint(1, 4)
    return shape, classes, data


def draw_model(rng, layers, names, batch_norm):
    model = {"layers": layers}
    if batch_norm and rng.random() < 0.4:
        model["sync_batch_norm"] = True
    if rng.random() < 0.15 and len(names) > 2:
        model["freeze"] = [rng.choice(names)]
    if rng.random() < 0.2:
        model["recompute"] = [str(rng.choice([
            i for i, text in enumerate(layers)
            if not text.startswith(("stash", "pop"))]))]
    return model


def draw_train(rng, precision):
    chosen = [(p, device) for p, device, often in DTYPES
              for _ in range(often) if precision in (None, p)]
    precision, device = rng.choice(chosen)
    train = {"seed": rng.randrange(1000), "precision": precision,
             "device": device, "global_batch_size": rng.choice([6, 12])}
    if precision == "f16":  # its dynamic scale would skip steps that overflow
        train["loss_scale"] = rng.choice([0.5, 1, 8])
    elif rng.random() < 0.1:
        train["loss_scale"] = rng.choice([1024, 0.5, "dynamic"])
    if rng.random() < 0.1:
        train["threads_per_rank"] = 2
    if rng.random() < 0.4:
        train["eval_every"] = rng.randint(1, 3)
    return train


def draw_loss(rng, classes):
    loss = {}
    if classes:
        loss["kind"] = "cross_entropy"
        if rng.random() < 0.3:
            loss["label_smoothing"] = rng.choice([0.05, 0.1, 0.3])
        if rng.random() < 0.3:
            loss["class_weights"] = [rng.choice([0.1, 0.3, 1, 1.7])
                                     for _ in range(classes)]
    else:
        loss["kind"] = rng.choice(["mse", "l1", "huber", "smooth_l1", "bce"])
        option, values = {"huber": ("delta", [0.3, 0.7, 1.0, 2.0]),
                          "smooth_l1": ("beta", [0, 0.3, 1.0, 2.0]),
                          "bce": ("pos_weight", [0.5, 1.0, 2.0])}.get(
                              loss["kind"], (None, None))
        if option and rng.random() < 0.7:
            loss[option] = rng.choice(values)
    if rng.random() < 0.25:
        loss["reduction"] = "sum"
    return loss


def draw_optimizer(rng, names, loss):
    kinds = ["sgd", "sgd", "sgd", "adam", "adam", "adamw", "adamw", "lamb"]
    if loss["kind"] != "l1":  # its signs may cancel: a gradient of rounding
        kinds.append("lars")
    kind = rng.choice(kinds)
    keys = {"kind": kind}
    if kind == "sgd":
        summed = loss.get("reduction") == "sum"
        keys["lr"] = rng.choice([0.003, 0.01, 0.03]) * (0.1 if summed else 1)
        if rng.random() < 0.7:
            keys["momentum"] = rng.choice([0.5, 0.9])
            keys.update(rng.choice([{}, {"nesterov": True}, {"dampening": 0.1},
                                    {"dampening": 0.5}]))
    elif kind == "lars":
        keys.update(lr=rng.choice([0.1, 0.5]),
                    trust_coefficient=rng.choice([0.001, 0.01]))
        if rng.random() < 0.5:
            keys["momentum"] = 0.8
    else:
        keys.update(lr=rng.choice([1e-3, 3e-3, 1e-2]),
                    eps=rng.choice([1e-8, 1e-6, 1e-3]))
        if rng.random() < 0.4:
            keys["betas"] = rng.choice([[0.9, 0.95], [0.8, 0.99], [0.0, 0.9]])
        if kind != "lamb" and rng.random() < 0.3:
            keys["amsgrad"] = True
    if rng.random() < 0.2:
        keys.update(lr_scaling=rng.choice(["linear", "sqrt"]),
                    lr_base_batch_size=rng.choice([4, 8, 15]))
    keys.update(draw_decay(rng, names))
    clip = rng.random()
    if clip < 0.3:
        keys["clip_grad_norm"] = rng.choice([0.05, 0.5, 2.0, 100.0])
    elif clip < 0.5:
        keys["clip_grad_value"] = rng.choice([0.003, 0.03, 0.3])
    if rng.random() < 0.25:
        keys["ema_decay"] = rng.choice([0.5, 0.9, 0.999])
    if rng.random() < 0.15:
        keys["skip_nonfinite"] = True
    if rng.random() < 0.7:
        keys.update(draw_schedule(rng))
    return keys


def draw_decay(rng, names):
    keys = {}
    if rng.random() < 0.5:
        keys["weight_decay"] = rng.choice([1e-3, 1e-2, 0.1])
    if rng.random() < 0.3:
        keys["no_decay"] = rng.choice([["*.bias"], ["0.*"], ["*.weight"],
                                       [rng.choice(names)]])
    elif rng.random() < 0.2:
        keys["no_decay_1d"] = True
    return keys


def draw_schedule(rng):
    keys = {}
    if rng.random() < 0.5:
        keys["warmup_steps"] = rng.randint(1, 4)
        if rng.random() < 0.5:
            keys["warmup_start"] = rng.choice([0.0, 0.01, 0.5])
    ends = {"schedule_steps": rng.randint(1, 6)}
    options = {
        "constant": {},
        "step": {"step_size": rng.randint(1, 3),
                 "gamma": rng.choice([0.1, 0.5])},
        "multi_step": {"milestones": sorted(rng.choices(
            range(STEPS), k=rng.randint(1, 4))),
                       "gamma": rng.choice([0.1, 0.5])},
        "exponential": {"gamma": rng.choice([0.5, 0.9])},
        # PyTorch's rises again behind its end.
        "cosine": {"schedule_steps": STEPS + rng.randint(0, 3),
                   "min_factor": rng.choice([0, 0.1])},
        "linear": {**ends, "min_factor": rng.choice([0, 0.1, 1.0])},
        "one_cycle": {"schedule_steps": rng.randint(STEPS, 8)},
        "polynomial": {**ends, "power": rng.choice([1, 2, 0.5])},
        "inverse_sqrt": {},
    }
    name = rng.choice(sorted(options))
    return {**keys, "schedule": name, **options[name]}


def draw_comm(rng):
    comm = {}
    if rng.random() < 0.5:
        comm["inline_bytes"] = 0
    if rng.random() < 0.3:
        comm.update(first_bucket_bytes=256, bucket_bytes=512)
    if rng.random() < 0.2:
        comm["cross_step"] = True
    if rng.random() < 0.2:
        comm["fuse_updates"] = False
    return comm


def draw_phases(rng, case, batch_norm):
    config = case["config"]
    size = config["train"]["global_batch_size"]
    config["data"]["train_count"] = size * rng.randint(1, 3) + rng.randint(0, 2)
    layers = config["model"]["layers"]
    first = draw_phase(rng, layers, size, batch_norm)
    if rng.random() < 0.7:
        return [{**first, "until": STEPS}]
    second = (draw_phase(rng, layers, size, batch_norm)
              if rng.random() < 0.7 else first)
    return [{**first, "until": rng.randint(1, STEPS - 1)},
            {**second, "until": STEPS}]


def draw_phase(rng, layers, size, batch_norm):
    """A mesh, and micro-batches, which may be uneven. Batch norms get none of
    one or two rows, whose normalized values are signs."""
    dp, pp = rng.choice(MESHES)
    mesh = {"dp": dp, "pp": pp}
    if pp > 1:
        mesh.update(draw_pipeline(rng, pp, layers))
    share = size // dp
    fits = [m for m in range(1, share + 1)
            if not batch_norm or m > 2 and share % m not in (1, 2)]
    if pp > 1 and rng.random() < 0.8:
        fits = [m for m in fits if m <= max(2, share // 2)] or fits
    if mesh.get("schedule") == "dualpipe_v":
        fits = [m for m in fits if math.ceil(share / m) >= 2 * pp]
    if not fits:
        raise DoesNotFit("no micro-batch for %s" % mesh)
    return {"mesh": mesh, "train": {"micro_batch_size": rng.choice(fits)}}


def draw_pipeline(rng, pp, layers):
    # A stage cannot begin between a stash and the layer behind it.
    places = len(layers) - sum(text.startswith("stash") for text in layers)
    fits = [name for name, chunks in SCHEDULES.items() if chunks * pp <= places]
    if not fits:
        raise DoesNotFit("%d layers for %d stages" % (places, pp))
    name = rng.choice(fits)
    mesh = {"schedule": name}
    if name in ("interleaved_1f1b", "breadth_first"):
        mesh["virtual_stages"] = SCHEDULES[name]
    if SCHEDULES[name] == 1 and name != "search" and rng.random() < 0.5:
        mesh["cuts"] = sorted(rng.sample(range(1, len(layers)), pp - 1))
    elif rng.random() < 0.5:
        mesh["balance"] = rng.choice(["flops", "layers", "parameters"])
    return mesh


def draw_start(case):
    """The first values, f64, that every precision of the case can hold: norms
    and buffers are not all 1 and 0, which would hide errors."""
    config = case["config"]
    seed = config["train"]["seed"]
    network = Network(config["model"]["layers"], case["sample_shape"])
    generator = torch.Generator().manual_seed(seed)
    dtype = {"bf16": torch.bfloat16, "f16": torch.float16}.get(
        config["train"]["precision"], torch.float32)
    start = {}
    for name, value in network.state_dict().items():
        if not value.is_floating_point():
            start[name] = value
            continue
        drawn = torch.rand(value.shape, generator=generator)
        if value.dim() > 1:
            bound = math.sqrt(3 / value[0].numel())
            value = (2 * drawn - 1) * bound
        else:
            value = value + drawn * 0.5 - (0.1 if "var" in name else 0.25)
        start[name] = value.to(dtype).double()
    return start
