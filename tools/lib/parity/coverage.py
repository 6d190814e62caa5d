"""What the trainer's configuration knows and no draw has.

    for line in missing("bazel-bin/tools/trainer"):
        print(line)         # optimizer.kind = "lion"

The trainer says what it knows: keys in `trainer train --help=markdown`, words of
a key in the error about a wrong one. What draws have is counted in draws, without
training them.
"""

import re
import subprocess

from parity.draw import draw_case
from parity.network import parse

CASES = 500  # draws that are looked at

# Keys whose words are asked for, and words that are not for this tester.
WORDS = {
    "model.layers": (),
    # Larger than those that are drawn, of the same parts, and VGGs: of 128
    # million parameters. tools/golden/parity.py has both.
    "model.kind": ("resnet34", "resnet50", "resnet101", "vgg11", "vgg11_bn",
                   "vgg16", "vgg16_bn", "gpt_mini", "gpt2", "gpt2_medium",
                   "gpt2_large", "gpt2_xl", "vit_small", "vit_base"),
    "loss.kind": (),
    "loss.reduction": ("mean",),
    "optimizer.kind": (),
    "optimizer.schedule": (),
    "optimizer.lr_scaling": ("none",),
    "mesh.schedule": (),
    "zero.accumulate": (),
    "mesh.balance": ("measured",),  # its cuts differ from run to run
    "train.precision": ("auto",),
    "comm.reduction_dtype": ("auto",),
    "comm.hook": (),
    "checkpoint.best_metric": ("eval_loss",),
}

# Sections, and keys that no draw has: that change no number, or that are for
# the readers of files (tests/data), for GPUs, or for limits of memory.
SECTIONS = {
    "model": {"init_from", "init_strict", "zero_init_residual"},
    "data": {"path", "val_fraction", "normalize", "augment", "tokenizer",
             "tokenizer_path", "token_type", "image_size", "resize",
             "crop_area_min", "color_jitter", "hue_jitter", "prefetch"},
    "train": {"loss_scale_min", "cuda_graphs", "kernel_cache"},
    "loss": set(),
    "optimizer": set(),
    "zero": set(),
    "mesh": {"auto", "bandwidth", "memory_limit", "schedule_file",
             "activation_limit", "depth_blocks"},
    "comm": {"timeout_s", "transport", "encrypt", "liveness_s", "join_s"},
    "checkpoint": {"compare_replicas", "every_minutes", "in_place", "allow_unexpected",
                   "allow_missing", "allow_changed", "replace"},
}
# Keys that follow from the phases of each draw.
OF_PHASES = {"train.steps", "train.micro_batch_size", "checkpoint.dir",
             "checkpoint.keep", "checkpoint.resume"}


def known_keys(trainer):
    """The keys of SECTIONS, as "optimizer.lr"."""
    page = subprocess.run([trainer, "train", "--help=markdown"], check=True,
                          capture_output=True, text=True).stdout
    section, keys = "", set()
    for line in page.splitlines():
        header = re.match(r"## \[(\w+)\]$", line)
        key = re.match(r"\| `(\w+)` \| ", line)
        if header:
            section = header.group(1)
        elif line.startswith("## "):
            section = ""
        elif key and key.group(1) not in SECTIONS.get(section,
                                                      {key.group(1)}):
            keys.add("%s.%s" % (section, key.group(1)))
    return keys


def known_words(trainer, key):
    """The words that a key may have, by the error about one that it may not."""
    said = subprocess.run([trainer, "train", "--set=train.steps=1",
                           "--set=%s=?" % key], check=False,
                          capture_output=True, text=True).stderr
    if key == "model.layers":
        return {text.split()[0]
                for text in said.split("there are ")[-1].split(", ")}
    return set(re.findall(r'"([a-z0-9_]+)"', said.split("one of ")[-1]))


def drawn():
    """(keys, {key: words}) of CASES draws."""
    keys, words = set(OF_PHASES), {key: set() for key in WORDS}

    def take(section, values):
        for name, value in values.items():
            key = "%s.%s" % (section, name)
            keys.add(key)
            if key == "model.layers":
                words[key] |= {parse(text)[0] for text in value}
            elif key in WORDS:
                words[key].add(value)

    for seed in range(CASES):
        case = draw_case(seed)
        for section, values in case["config"].items():
            take(section, values)
        keys |= {"train.epochs"} if "epochs" in case else set()
        for phase in case["phases"]:
            take("mesh", phase["mesh"])
    return keys, words


def missing(trainer):
    keys, words = drawn()
    lines = sorted(known_keys(trainer) - keys)
    for key, left_out in WORDS.items():
        rest = known_words(trainer, key) - words[key] - set(left_out)
        lines += ['%s = "%s"' % (key, word) for word in sorted(rest)]
    return lines
