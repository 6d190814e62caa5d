"""The rooms of a folder: a rule of check_style.py.

    for line, sentence in rooms(file): ...

A large folder is cut into rooms, folders of its own, and each says which of the
others it may include: always such that stand above it here, so no two rooms need
each other.
"""

import re

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
    "nn/kernels/cuda": {
        "kernel_parts": (),
        "device": ("kernel_parts",),
        "libraries": ("kernel_parts",),
        FRONT: ("kernel_parts", "device", "libraries"),
    },
    "tools/trainer": {
        "terminal": (),
        "config": ("terminal",),
        "metrics": ("terminal",),
        "launch": ("terminal", "config"),
        "doctor": ("terminal",),
        "run": ("terminal", "config", "metrics"),
        "commands": ("terminal", "config", "metrics", "launch", "doctor",
                     "run"),
        FRONT: ("terminal", "commands"),
    },
}


def folder_of(path):
    """Which folder of ROOMS a path lies in; None: in no such."""
    for folder in ROOMS:
        if path.startswith(folder + "/"):
            return folder
    return None


def room_of(folder, path):
    """The room of a path such as "actors/chunks/chunk.h" in "actors"."""
    parts = path[len(folder) + 1:].split("/")
    return parts[0] if len(parts) > 1 else FRONT


def rooms(file):
    folder = folder_of(file.path)
    if not file.is_cpp or folder is None:
        return
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
