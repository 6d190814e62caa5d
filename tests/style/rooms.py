"""The rooms of a folder: two rules of check_style.py.

    for line, sentence in rooms(file): ...
    for folder, line, sentence in room_sizes(tree): ...

A large folder is cut into rooms, folders of its own, and each says which of the
others it may include: always such that stand above it here, so no two rooms need
each other. A room has at most PAIRS_MAX pairs of header and source, so that one
look finds what is in it.
"""

import collections
import os
import re

PAIRS_MAX = 20

FRONT = "front"  # the files of the folder itself

ROOMS = {
    "actors": {
        "checkpoint": (),
        "tracing": (),
        "caf": (),
        "spec": ("tracing",),
        "hooks": ("spec",),
        "chunks": ("checkpoint", "tracing", "spec"),
        "planning": ("spec", "chunks"),
        "engine": ("spec", "chunks"),
        "setup": ("checkpoint", "spec", "chunks", "planning", "engine"),
        "protocol": ("checkpoint", "caf", "chunks", "setup"),
        "strands": ("checkpoint", "tracing", "caf", "engine", "setup",
                    "protocol"),
        "supervision": ("checkpoint", "caf", "spec", "setup", "protocol",
                        "strands"),
        "cluster": ("tracing", "caf", "spec", "setup", "protocol", "strands",
                    "supervision"),
        "program": ("caf", "spec", "planning", "engine", "setup", "protocol",
                    "cluster"),
        "launchers": ("spec", "cluster"),
        "inference": ("checkpoint", "caf", "spec", "setup", "protocol",
                      "strands", "supervision"),
        FRONT: ("caf", "spec", "setup", "protocol", "supervision", "cluster"),
        "sim": ("checkpoint", "tracing", "caf", "spec", "setup", "strands",
                "program", "supervision", "inference"),
        "dataflow": ("caf", "spec", "cluster", "sim"),
    },
    "actors/chunks": {
        "step": (),
        FRONT: ("step",),
    },
    "comm/spanning": {
        "plan": (),
        "frames": ("plan",),
        "operation": ("plan", "frames"),
        FRONT: ("plan", "frames", "operation"),
    },
    "nn/kernels/cuda": {
        "kernel_parts": (),
        "device": ("kernel_parts",),
        "libraries": ("kernel_parts",),
        FRONT: ("kernel_parts", "device", "libraries"),
    },
    "tools/trainer": {
        "terminal": (),
        "deepspeed": (),
        "config": ("terminal", "deepspeed"),
        "metrics": ("terminal",),
        "launch": ("terminal", "config"),
        "doctor": ("terminal",),
        "run": ("terminal", "config", "metrics"),
        "commands": ("terminal", "config", "metrics", "launch", "doctor",
                     "run"),
        FRONT: ("terminal", "commands"),
    },
}


def folders_of(path):
    """The folders of ROOMS that a path lies in."""
    return [folder for folder in ROOMS if path.startswith(folder + "/")]


def room_of(folder, path):
    """The room of a path such as "actors/chunks/chunk.h" in "actors"."""
    parts = path[len(folder) + 1:].split("/")
    return parts[0] if len(parts) > 1 else FRONT


def rooms(file):
    for folder in folders_of(file.path) if file.is_cpp else ():
        yield from _arrows(folder, file)


def _arrows(folder, file):
    own = room_of(folder, file.path)
    if own not in ROOMS[folder]:
        yield 1, "%s/%s/ is no room of rooms.py; add it, with what it uses" % (
            folder, own)
        return
    for number, line in file.numbered():
        found = re.match(r'#include "(%s/[^"]*)"' % folder, line)
        if not found:
            continue
        room = room_of(folder, found.group(1))
        if room != own and room not in ROOMS[folder][own]:
            yield number, "%s of %s/ may not include %s; it may use %s" % (
                own, folder, found.group(1),
                ", ".join(ROOMS[folder][own]) or "no other room")


def room_sizes(tree):
    pairs = collections.defaultdict(set)
    for file in tree.files:
        folder, name = os.path.split(file.path)
        if file.is_cpp and not folder.startswith(("tests", "examples")):
            pairs[folder].add(name.partition(".")[0])
    for folder, names in sorted(pairs.items()):
        if len(names) > PAIRS_MAX:
            yield folder, 1, "%d pairs of header and source, at most %d; give " \
                "what belongs together a room of its own" % (len(names), PAIRS_MAX)
