"""Draws networks of model.kind, small ones.

    kind = draw_kind(rng)
    shape, data, model = draw_kind_of(rng, kind)
    # [8], {"kind": "tokens", "context": 8, ...}, {"kind": "gpt_nano", ...}

Those whose size no key changes are rare, and none is larger than a ResNet-18.
"""

KINDS = (["gpt_nano"] * 8 + ["gpt_micro"] * 4 + ["vit_tiny"] * 8 + ["mlp"] * 4
         + ["linear"] * 2 + ["lenet"] * 2)
# Trainings of eleven million parameters take seconds.
LARGE, LARGE_SHARE = "resnet18", 0.02


def draw_kind(rng):
    return LARGE if rng.random() < LARGE_SHARE else rng.choice(KINDS)


def draw_sizes(rng):
    heads = rng.randint(1, 3)
    return {"depth": rng.randint(1, 3), "heads": heads,
            "width": heads * rng.choice([2, 3, 4, 8])}


def gpt(rng, kind):
    data = draw_tokens(rng)
    model = {"kind": kind, **draw_sizes(rng)}
    if rng.random() < 0.4:
        model["dropout"] = rng.choice([0, 0.1, 0.3])
    if rng.random() < 0.4:
        model["attention_dropout"] = rng.choice([0, 0.1, 0.3])
    if rng.random() < 0.4:
        model["tie_head"] = rng.random() < 0.3
    if rng.random() < 0.2:
        model["context"] = data["context"] + rng.randint(0, 3)
    return [data["context"]], data, model


def vit(rng, kind):
    patch = rng.randint(1, 3)
    side = patch * rng.randint(1, 3)
    shape, data = draw_synthetic(rng, [side, side, rng.randint(1, 4)])
    return shape, data, {"kind": kind, "patch_size": patch, **draw_sizes(rng)}


def lenet(rng, kind):
    shape, data = draw_synthetic(rng, [rng.randint(16, 19), rng.randint(16, 19),
                                       rng.randint(1, 3)])
    return shape, data, with_bias(rng, {"kind": kind})


def flat(rng, kind):
    shape = [rng.randint(2, 12)]
    if rng.random() < 0.5:
        shape = [rng.randint(1, 4), rng.randint(1, 4), rng.randint(1, 3)]
    shape, data = draw_synthetic(rng, shape)
    model = with_bias(rng, {"kind": kind})
    if kind == "mlp":
        model["widths"] = [rng.randint(2, 12)
                           for _ in range(rng.randint(1, 4))]
    return shape, data, model


def resnet(rng, kind):
    side = rng.choice([4, 8])
    shape, data = draw_synthetic(rng, [side, side, rng.randint(1, 4)])
    return shape, data, {"kind": kind, "stem": rng.choice(
        ["auto", "cifar", "imagenet"])}


def with_bias(rng, model):
    return {**model, "bias": False} if rng.random() < 0.3 else model


def draw_tokens(rng):
    return {"kind": "tokens", "context": rng.randint(2, 6),
            "vocab_size": rng.choice([5, 11, 20]),
            "window": rng.choice(["random", "sequential"])}


def draw_synthetic(rng, shape):
    classes = rng.randint(2, 5) if rng.random() < 0.5 else 0
    data = {"kind": "synthetic", "input_shape": shape, "num_classes": classes}
    if not classes:
        data["target_dim"] = rng.randint(1, 4)
    return shape, data


def draw_kind_of(rng, kind):
    makers = {"gpt": gpt, "vit": vit, "resnet": resnet, "lenet": lenet}
    return makers.get(kind.split("_")[0].rstrip("0123456789"), flat)(rng, kind)
