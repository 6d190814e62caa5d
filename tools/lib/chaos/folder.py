"""Checks a folder of checkpoints by its documented format, docs/checkpoints.md.

    before = folder.steps(path)
    ...                                     # a run with a fault
    problems = folder.problems(path, before, keep=2)
    problems += folder.differences(path + "/step-00000100", other_path)
"""

import fcntl
import json
import os
import re
import struct

LOCK = ".lock"
FILES = ("model.safetensors.index.json", "trainer_state.json", "plan.json")


def names(path):
    try:
        return sorted(os.listdir(path))
    except FileNotFoundError:
        return []


def steps(path):
    """Returns the steps of the committed checkpoints, ascending."""
    found = (re.fullmatch(r"step-(\d+)", name) for name in names(path))
    return sorted(int(match.group(1)) for match in found if match)


def unfinished(path):
    """Returns the names that only a run that saves, or has died, leaves."""
    return [name for name in names(path) if ".tmp-" in name]


def checkpoint(path, step):
    return os.path.join(path, "step-%08d" % step)


def tensor_problems(path):
    """Returns the errors of a safetensors file: header, ranges, length."""
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    at = 0
    for begin, end in sorted(t["data_offsets"] for t in header.values()):
        if begin != at:
            return ["%s: a gap at byte %d of its data" % (path, at)]
        at = end
    if os.path.getsize(path) != 8 + length + at:
        return ["%s: its length is not that of its tensors" % path]
    return []


def checkpoint_problems(path):
    """Returns the errors of a committed checkpoint, which must be complete."""
    try:
        texts = {}
        for name in FILES:
            with open(os.path.join(path, name), encoding="utf-8") as file:
                texts[name] = json.load(file)
        index, state = texts[FILES[0]], texts[FILES[1]]
        problems = []
        if os.path.basename(path) != "step-%08d" % state["step"]:
            problems.append("%s: its state is of step %s" % (
                path, state["step"]))
        shards = [name for name in names(path)
                  if name.endswith(".safetensors")]
        if len(shards) != 2 * index["metadata"]["shards"]:
            problems.append("%s: %d files of tensors" % (path, len(shards)))
        for name in set(index["weight_map"].values()) - set(shards):
            problems.append("%s: no %s" % (path, name))
        for name in shards:
            problems += tensor_problems(os.path.join(path, name))
        return problems
    except (OSError, ValueError, KeyError, struct.error) as error:
        return ["%s: %s: %s" % (path, type(error).__name__, error)]


def is_locked(path):
    """Returns whether a run has locked the folder."""
    try:
        with open(os.path.join(path, LOCK), "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return False
            except BlockingIOError:
                return True
    except FileNotFoundError:
        return False


def problems(path, before, keep):
    """Returns the errors of a folder in which no run writes any more, and the
    steps `before` were committed: each of these checkpoints must be complete,
    or have been removed for `keep` newer ones."""
    found = []
    after = steps(path)
    for step in before:
        if step not in after and sum(s > step for s in after) < keep:
            found.append("step %d was committed and is lost; there are %s" % (
                step, after))
    for step in after:
        found += checkpoint_problems(checkpoint(path, step))
    if is_locked(path):
        found.append("%s/%s is still held" % (path, LOCK))
    return found


def differences(path, other):
    """Returns the files of tensors in which two checkpoints differ."""
    tensors = [name for name in names(path) if name.endswith(".safetensors")]
    others = [name for name in names(other) if name.endswith(".safetensors")]
    if tensors != others or not tensors:
        return ["%s has %s, %s has %s" % (path, tensors, other, others)]
    found = []
    for name in tensors:
        with open(os.path.join(path, name), "rb") as a:
            with open(os.path.join(other, name), "rb") as b:
                if a.read() != b.read():
                    found.append("%s/%s is not that of %s" % (
                        path, name, other))
    return found
