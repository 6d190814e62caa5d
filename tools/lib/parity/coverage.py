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

CASES = 400  # draws that are looked at

# Keys whose words are asked for, and words that are not for this tester.
WORDS = {
    "model.layers": (),
    "loss.kind": ("auto",),
    "optimizer.kind": (),
    "optimizer.schedule": (),
    "optimizer.lr_scaling": ("none",),
    "mesh.schedule": (),
    "mesh.balance": ("measured",),  # its cuts differ from run to run
    "train.precision": ("auto",),
}

# Sections whose keys change numbers, and keys that are left to other tests:
# tests/golden and tools/golden have named models, tests/tools loss scales.
SECTIONS = {
    "loss": {"ignore_index"},
    "optimizer": set(),
    "mesh": {"memory_limit", "schedule_file", "activation_limit",
             "strict_order"},
}


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
    keys, words = set(), {key: set() for key in WORDS}

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
