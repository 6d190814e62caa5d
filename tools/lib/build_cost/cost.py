"""The cost of one build as plain data, which is also the JSON of --json.

    cost = cost_of(profile, command="build //base/...", cores=2, cpu=None)
    cost["kinds"]["compiles"]       # {"number": 466, "seconds": 688.1}
    cost["folders"]["actors/jobs"]  # {"compiles": 12, "seconds": 40.2}
    cost["sources"]["base/half.cc"] # 0.8
    cost["tests"]["//comm:a_test"]  # 1.5

Seconds are those of actions: wall-clock time between an action's start and its
end, without its wait for a free core. CPU seconds are not in a profile. They
come from the kernel, which counts them for Bazel's server and for all processes
that it started.
"""

import json
import os

from actions import COMPILES, KINDS, TESTS, ProfileError

# The keys that a table needs.
_KEYS = {"command", "cores", "wall_seconds", "before_actions_seconds",
         "cpu_seconds", "kinds", "total_seconds", "folders", "sources", "tests"}


def read_cpu(path):
    """Returns the CPU seconds of a server and of the processes that it started.

    `path` is a copy of /proc/PID/stat. Its fields 14 to 17 are the user and
    system time of the process and of its children, in clock ticks.
    """
    with open(path, encoding="utf-8") as text:
        # The name of the program, in brackets, may contain spaces.
        fields = text.read().rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    user, system, child_user, child_system = map(int, fields[11:15])
    return {"bazel": (user + system) / ticks,
            "processes": (child_user + child_system) / ticks}


def _rounded(seconds):
    return None if seconds is None else round(seconds, 3)


def _sums(actions, kind):
    """Returns {name: seconds} of one kind of action."""
    sums = {}
    for action in actions:
        if action.kind == kind:
            sums[action.name] = sums.get(action.name, 0) + action.seconds
    return {name: _rounded(sums[name]) for name in sorted(sums)}


def _kinds(actions):
    kinds = {kind: {"number": 0, "seconds": 0.0} for kind in KINDS}
    for action in actions:
        kinds[action.kind]["number"] += 1
        kinds[action.kind]["seconds"] += action.seconds
    for row in kinds.values():
        row["seconds"] = _rounded(row["seconds"])
    return kinds


def _folders(actions):
    folders = {}
    for action in actions:
        row = folders.setdefault(action.folder, {"compiles": 0, "seconds": 0.0})
        row["compiles"] += action.kind == COMPILES
        row["seconds"] += action.seconds
    for row in folders.values():
        row["seconds"] = _rounded(row["seconds"])
    return dict(sorted(folders.items()))


def cost_of(profile, command, cores, cpu):
    """Returns the cost of the build that `profile` recorded.

    `command`, `cores` and `cpu` (of read_cpu) are None if they are not known.
    """
    actions = profile.actions
    return {
        "command": command,
        "cores": cores,
        "wall_seconds": _rounded(profile.wall_seconds),
        "before_actions_seconds": _rounded(profile.before_actions_seconds),
        "cpu_seconds": cpu,
        "kinds": _kinds(actions),
        "total_seconds": _rounded(
            sum((action.seconds for action in actions), 0.0)),
        "from_cache": sum(action.from_cache for action in actions),
        "merged_events": profile.merged,
        "folders": _folders(actions),
        "sources": _sums(actions, COMPILES),
        "tests": _sums(actions, TESTS),
    }


def read_cost(path):
    """Reads the JSON of an earlier run."""
    try:
        with open(path, encoding="utf-8") as text:
            cost = json.load(text)
    except OSError as error:
        raise ProfileError("%s: %s" % (path, error.strerror or error))
    except ValueError:
        cost = None
    if not isinstance(cost, dict) or not _KEYS <= cost.keys():
        raise ProfileError("%s is not what tools/buildcost --json writes" % path)
    return cost
