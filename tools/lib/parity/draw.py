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

from parity.batches import draw_batches
from parity.course import is_dynamic
from parity.kinds import draw_kind, draw_kind_of, draw_synthetic, draw_tokens
from parity.layers import draw_layers
from parity.models import make_network, network_of
from parity.network import Network
from parity.samples import is_classification

STEPS = 5
ONE_CYCLE_MIN = 4  # steps, so that it has both halves
KIND_SHARE = 0.25  # of draws with a model.kind
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
            case = draw_once(rng, precision)
            # Numbers of their own: a seed has the same draw as without them.
            draw_hook(random.Random("%d/hook" % seed), case)
            draw_zero(random.Random("%d/zero" % seed), case)
            draw_tp(random.Random("%d/tp" % seed), case)
            draw_batches(random.Random("%d/batches" % seed), case,
                         network_of(case).has_batch_norm(),
                         is_classification(case["config"]["data"]))
            return case
        except (DoesNotFit, ValueError, RuntimeError):
            continue  # PyTorch refuses the layers
    raise DoesNotFit("none of %d draws of seed %d" % (ATTEMPTS_MAX, seed))


def draw_once(rng, precision):
    if rng.random() < KIND_SHARE:
        shape, data, model = draw_kind_of(rng, draw_kind(rng))
    else:
        shape, data = draw_data(rng)
        model = {}
    data.update(seed=rng.randrange(1000), test_count=rng.randint(1, 7))
    if rng.random() < 0.1:
        data["workers"] = 2
    outputs = draw_outputs(rng, data, model)
    if not model.get("kind"):
        # "num_classes" goes before the layers, which it is checked with.
        model["layers"] = draw_layers(
            rng, shape, outputs, data.get("vocab_size", 0),
            lambda layers: Network([*layers, "flatten"], shape).outputs)
    network = make_network(model, shape, outputs)
    names = [name for name, _ in network.named_parameters()]
    draw_parts(rng, model, names, network)
    loss = draw_loss(rng, data, outputs)
    case = {"sample_shape": shape, "outputs": outputs, "steps": STEPS,
            "config": {
                "model": model,
                "data": data,
                "train": draw_train(rng, precision),
                "loss": loss,
                "optimizer": draw_optimizer(rng, names, loss),
                "comm": draw_comm(rng),
                "checkpoint": draw_checkpoint(rng)}}
    if model.get("sync_batch_norm"):
        # training.py has no gradients of single replicas there, to be rounded.
        case["config"]["comm"].pop("reduction_dtype", None)
    if "ignore_index" in loss:  # a batch may have nothing but that class
        case["config"]["train"]["stop_on_nan"] = False
    draw_phases(rng, case, network)
    return case


def draw_data(rng):
    """Shape of a sample, and keys of the data, of a list of layers."""
    kind = rng.choice(["vector", "vector", "image", "image", "tokens"])
    if kind == "tokens":
        data = draw_tokens(rng)
        return [data["context"]], data
    shape = [rng.randint(2, 12)]
    if kind == "image":
        shape = [rng.randint(3, 9), rng.randint(3, 9), rng.randint(1, 4)]
    return draw_synthetic(rng, shape)


def draw_outputs(rng, data, model):
    """The number of outputs, which may be above that of the classes."""
    key = "vocab_size" if data["kind"] == "tokens" else "num_classes"
    outputs = data[key] or data["target_dim"]
    if data[key] and rng.random() < 0.1:
        outputs += rng.randint(1, 4)
        model[key] = outputs
    return outputs


def draw_parts(rng, model, names, network):
    """What of the network is frozen, recomputed or synchronised."""
    if network.has_batch_norm() and rng.random() < 0.4:
        model["sync_batch_norm"] = True
    if rng.random() < 0.15 and len(names) > 2:
        model["freeze"] = [rng.choice(names)]
        if rng.random() < 0.3 and any(n.endswith(".bias") for n in names):
            model["freeze"] = ["*.bias"]
    if rng.random() >= 0.2:
        return
    if "layers" in model:
        model["recompute"] = [str(rng.choice([
            i for i, text in enumerate(model["layers"])
            if not text.startswith(("stash", "pop"))]))]
    elif network.block_names:
        model.update(rng.choice([
            {"recompute": [rng.choice(network.block_names)]},
            {"recompute_every": rng.randint(1, 2)},
            {"recompute_budget": rng.choice(
                [400000, 1600000] if model["kind"].startswith("resnet")
                else [50000, 200000])}]))


def draw_train(rng, precision):
    chosen = [(p, device) for p, device, often in DTYPES
              for _ in range(often) if precision in (None, p)]
    precision, device = rng.choice(chosen)
    train = {"seed": rng.randrange(1000), "precision": precision,
             "device": device, "global_batch_size": rng.choice([6, 12])}
    if precision == "f16" and rng.random() < 0.5:
        train["loss_scale"] = rng.choice([0.5, 1, 8])
    elif precision == "f16" or rng.random() < 0.1:
        train["loss_scale"] = rng.choice([1024, 0.5, "auto", "dynamic"])
        if precision == "f16":
            train["loss_scale"] = rng.choice(["auto", "dynamic"])
    if is_dynamic(train):  # from much too small to much too large
        if rng.random() < 0.8:
            train["loss_scale_init"] = 2.0 ** rng.randint(0, 20)
        if rng.random() < 0.6:
            train["loss_scale_growth_interval"] = rng.randint(1, 3)
    if rng.random() < 0.1:
        train["threads_per_rank"] = 2
    if rng.random() < 0.4:
        train["eval_every"] = rng.randint(1, 3)
    if rng.random() < 0.1:
        train["early_stop_patience"] = rng.randint(1, 2)
        if rng.random() < 0.7:
            train["early_stop_min_delta"] = rng.choice([0.01, 0.1, 1.0])
    return train


def draw_loss(rng, data, outputs):
    loss = {}
    if is_classification(data):
        loss["kind"] = rng.choice(["cross_entropy", "cross_entropy", "auto"])
        if rng.random() < 0.3:
            loss["label_smoothing"] = rng.choice([0.05, 0.1, 0.3])
        if rng.random() < 0.3:
            loss["class_weights"] = [rng.choice([0.1, 0.3, 1, 1.7])
                                     for _ in range(outputs)]
        if rng.random() < 0.2:
            loss["ignore_index"] = rng.choice([-100, -1, 0, outputs - 1])
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
    keys = draw_kind_keys(rng, rng.choice(kinds), loss)
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


def draw_kind_keys(rng, kind, loss):
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
    if rng.random() < 0.1:
        del keys["lr"]
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
    if rng.random() < 0.1:
        comm["reduction_order"] = "tree"
    if rng.random() < 0.1:
        comm["reduction_dtype"] = rng.choice(["f32", "bf16", "f16"])
    return comm


def draw_hook(rng, case):
    comm = case["config"]["comm"]
    hook = rng.choice(["none", "gather_bf16", "gather_f16"])
    if rng.random() < 0.2 and "reduction_dtype" not in comm:
        comm["hook"] = hook


def draw_zero(rng, case):
    config = case["config"]
    if rng.random() < 0.2 and config["comm"].get("hook", "none") == "none":
        zero = config["zero"] = {"stage": rng.choice([1, 2, 2, 3, 3, 3])}
        if zero["stage"] > 1:
            zero["accumulate"] = rng.choice(["sharded", "local"])
        if zero["stage"] > 2:
            zero["ahead_bytes"] = rng.choice([0, 300, 1 << 20])
            zero["keep"] = rng.random() < 0.3


def draw_tp(rng, case):
    """Divides the heads of a GPT or ViT among the ranks along tp."""
    config = case["config"]
    heads = config["model"].get("heads", 1)
    if heads == 1:
        return
    context = config["data"].get("context", 1)  # tokens of a text
    for number, phase in enumerate(case["phases"]):
        if rng.random() >= 0.6:
            continue
        mesh = {**phase["mesh"], "tp": heads}
        if context % heads == 0 and rng.random() < 0.5:
            mesh["sequence_parallel"] = True
        case["phases"][number] = {**phase, "mesh": mesh}


def draw_checkpoint(rng):
    keys = {}
    if rng.random() < 0.2:
        keys["every"] = rng.randint(1, 3)
    if rng.random() < 0.2:
        keys["keep_best"] = True
    if rng.random() < 0.15:
        keys["best_metric"] = "eval_accuracy"
    return keys


def draw_phases(rng, case, network):
    """Adds the phases, and what depends on their number."""
    config = case["config"]
    train, optimizer = config["train"], config["optimizer"]
    size = train["global_batch_size"]
    steps_per_epoch = rng.randint(1, 3)
    config["data"]["train_count"] = size * steps_per_epoch + rng.randint(0, 2)
    if config["data"]["kind"] == "synthetic" and not (
            config["data"]["num_classes"]):  # no accuracy
        config["checkpoint"].pop("best_metric", None)

    def draw_one():
        return draw_phase(rng, config["model"], network, size)

    ends = []
    if rng.random() >= 0.7 and "early_stop_patience" not in train:
        ends = sorted(rng.sample(range(1, STEPS), rng.randint(1, 2)))
    elif rng.random() < 0.2:
        case["epochs"] = rng.randint(1, 5 // steps_per_epoch)
        case["steps"] = case["epochs"] * steps_per_epoch
    rest = case["steps"] - optimizer.get("warmup_steps", 0)
    short = optimizer.get("schedule") == "one_cycle" and rest < ONE_CYCLE_MIN
    if not ends and not short and rng.random() < 0.3:  # the rest of the run
        optimizer.pop("schedule_steps", None)
    phases = [draw_one()]
    for _ in ends:
        phases.append(draw_one() if rng.random() < 0.7 else phases[-1])
    case["phases"] = [{**phase, "until": end} for phase, end in zip(
        phases, [*ends, case["steps"]])]


def draw_phase(rng, model, network, size):
    """A mesh, and micro-batches, which may be uneven. Batch norms get none of
    one or two rows, whose normalized values are signs."""
    dp, pp = rng.choice(MESHES)
    mesh = {"dp": dp, "pp": pp}
    if pp > 1:
        mesh.update(draw_pipeline(rng, pp, model, network))
    share = size // dp
    fits = [m for m in range(1, share + 1) if not network.has_batch_norm()
            or m > 2 and share % m not in (1, 2)]
    if pp > 1 and rng.random() < 0.8:
        fits = [m for m in fits if m <= max(2, share // 2)] or fits
    if mesh.get("schedule") == "dualpipe_v":
        fits = [m for m in fits if math.ceil(share / m) >= 2 * pp]
    if not fits:
        raise DoesNotFit("no micro-batch for %s" % mesh)
    return {"mesh": mesh, "train": {"micro_batch_size": rng.choice(fits)}}


def draw_pipeline(rng, pp, model, network):
    layers = network.layers
    names = network.places or list(range(1, len(layers)))
    # A stage cannot begin between a stash and the layer behind it.
    places = 1 + len(names) - sum(text.startswith("stash") for text in layers)
    fits = [name for name, chunks in SCHEDULES.items() if chunks * pp <= places]
    if not fits:
        raise DoesNotFit("%d layers for %d stages" % (places, pp))
    name = rng.choice(fits)
    mesh = {"schedule": name}
    if name in ("interleaved_1f1b", "breadth_first"):
        mesh["virtual_stages"] = SCHEDULES[name]
    if SCHEDULES[name] == 1 and name != "search" and rng.random() < 0.5:
        chosen = sorted(rng.sample(range(len(names)), pp - 1))
        mesh["cuts"] = [names[i] for i in chosen]
    elif rng.random() < 0.5:
        mesh["balance"] = rng.choice(["flops", "layers", "parameters"])
    if rng.random() < 0.1:
        mesh["strict_order"] = True
    return mesh


def draw_start(case):
    """The first values, f64, that every precision of the case can hold: norms
    and buffers are not all 1 and 0, which would hide errors."""
    config = case["config"]
    seed = config["train"]["seed"]
    with torch.random.fork_rng():
        torch.manual_seed(seed)  # of PyTorch's first biases
        network = network_of(case)
    generator = torch.Generator().manual_seed(seed)
    dtype = {"bf16": torch.bfloat16, "f16": torch.float16}.get(
        config["train"]["precision"], torch.float32)
    start = {}
    for name, value in [*network.named_parameters(), *network.named_buffers()]:
        value = value.detach()
        if not value.is_floating_point():
            start[name] = value
            continue
        drawn = torch.rand(value.shape, generator=generator)
        if value.dim() > 1:
            bound = math.sqrt(3 / value[0].numel())
            value = (2 * drawn - 1) * bound
        else:
            value = value + drawn * 0.5 - (0.1 if "var" in name else 0.25)
        if name.startswith("layer") and name.endswith(".bn2.weight"):
            value *= 0.2  # otherwise many blocks amplify every rounding
        start[name] = value.to(dtype).double()
    return start
