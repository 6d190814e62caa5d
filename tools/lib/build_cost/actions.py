"""Reads the actions of a build from Bazel's JSON profile.

    profile = read_profile("profile.json.gz", root=".")
    profile.actions[0].kind        # "compiles"
    profile.actions[0].name        # "comm/group.cc"
    profile.actions[0].seconds     # 1.4
    profile.wall_seconds           # 431.2

The profile is a list of events in Chrome's trace format. One thread of Bazel
runs one action at a time, so an event belongs to an action if it happens on the
same thread during the action. Times of the profile are microseconds.
"""

import bisect
import collections
import gzip
import json
import os
import re

COMPILES = "compiles"
HEADERS = "precompiled headers"
ARCHIVES = "archives"
LINKS = "links"
TESTS = "tests"
OTHERS = "others"
KINDS = (COMPILES, HEADERS, ARCHIVES, LINKS, TESTS, OTHERS)

# Folders of actions that belong to no folder of the tree.
GENERATED = "(generated)"
EXTERNAL = "(external)"
NO_FOLDER = "(no folder)"

# Categories of events.
_ACTION = "action processing"
_WAIT = "action resource lock"
_FROM_CACHE = "remote output download"
_PHASE = "build phase marker"

# name:       the source of a compile, the label of a test, the output of a link
# seconds:    wall-clock time of the action, without its wait for a free core
# from_cache: whether a cache had the output, so that nothing was run
Action = collections.namedtuple(
    "Action", "kind name folder seconds from_cache")

# before_actions_seconds: time until Bazel starts to run actions
# merged:                 number of short events that a slim profile has merged
Profile = collections.namedtuple(
    "Profile", "actions wall_seconds before_actions_seconds merged")


class ProfileError(Exception):
    """The file is not a JSON profile of Bazel."""


def load_events(path):
    """Returns the list of events of a profile, compressed or not."""
    try:
        with open(path, "rb") as raw:
            content = raw.read()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        events = json.loads(content)["traceEvents"]
    except OSError as error:
        raise ProfileError("%s: %s" % (path, error.strerror or error))
    except (EOFError, KeyError, TypeError, ValueError):
        raise ProfileError("%s is not a whole JSON profile of Bazel" % path)
    return [event for event in events if isinstance(event, dict)]


def kind_and_name(title):
    """Splits the title that Bazel gives to an action.

        "Compiling comm/group.cc"          -> (COMPILES, "comm/group.cc")
        "Linking comm/libgroup.a"          -> (ARCHIVES, "comm/libgroup.a")
        "Testing //a:b_test (shard 1 of 2)" -> (TESTS, "//a:b_test")
    """
    title = re.sub(r" \[for (host|tool)\]$", "", title)
    verb, _, rest = title.partition(" ")
    if verb == "Compiling":
        # "Compiling a.h and 3 more alone" is a title of --config=headers.
        return COMPILES, re.sub(r"( and \d+ more)? alone$", "", rest)
    if verb == "Precompiling":
        return HEADERS, rest
    if verb == "Linking":
        return (ARCHIVES if rest.endswith((".a", ".lo")) else LINKS), rest
    if verb == "Testing":
        return TESTS, rest.split(" ")[0]
    return OTHERS, title


def two_levels(path):
    """Returns the first two folders of a path: "a/b" for "a/b/c/d.cc"."""
    return "/".join(os.path.dirname(path).split("/")[:2]) or NO_FOLDER


def folder_of(kind, name, label, root):
    """Returns the folder to which an action's seconds are added.

    The folder of a compile is that of its source. A source that the tree at
    `root` does not have was generated. Other actions belong to the package of
    their target, or of their output if the profile has no labels.
    """
    if kind == COMPILES:
        if name.startswith("external/"):
            return EXTERNAL
        if not os.path.exists(os.path.join(root, name)):
            return GENERATED
        return two_levels(name)
    if kind == TESTS:
        label = name
    if label.startswith("@"):
        return EXTERNAL
    if label.startswith("//"):
        return two_levels(label.replace(":", "/").lstrip("/"))
    if kind in (HEADERS, ARCHIVES, LINKS):
        return EXTERNAL if name.startswith("external/") else two_levels(name)
    return NO_FOLDER


class _Threads:
    """Finds the action during which an event happened."""

    def __init__(self, actions):
        self._by_thread = collections.defaultdict(list)
        for action in sorted(actions, key=lambda event: event["ts"]):
            self._by_thread[action.get("tid")].append(action)
        self._starts = {thread: [action["ts"] for action in of_thread]
                        for thread, of_thread in self._by_thread.items()}

    def action_of(self, event):
        """Returns the action's event, or None."""
        thread = event.get("tid")
        last = bisect.bisect_right(self._starts.get(thread, []), event["ts"])
        if last == 0:
            return None
        action = self._by_thread[thread][last - 1]
        return action if event["ts"] < action["ts"] + action["dur"] else None


def read_actions(events, root):
    """Returns the list of actions among `events`."""
    timed = [event for event in events if "ts" in event and "dur" in event]
    actions = [event for event in timed if event.get("cat") == _ACTION]
    threads = _Threads(actions)
    waits = collections.Counter()
    from_cache = set()
    for event in timed:
        if event.get("cat") in (_WAIT, _FROM_CACHE):
            action = threads.action_of(event)
            if action is None:
                continue
            if event["cat"] == _WAIT:
                waits[id(action)] += event["dur"]
            else:
                from_cache.add(id(action))
    found = []
    for action in actions:
        kind, name = kind_and_name(action["name"])
        label = action.get("args", {}).get("target", "")
        seconds = max(0, action["dur"] - waits[id(action)]) / 1e6
        found.append(Action(kind, name, folder_of(kind, name, label, root),
                            seconds, id(action) in from_cache))
    return found


def wall_seconds(events):
    """Returns the time from the first event's start to the last one's end."""
    starts = [event["ts"] for event in events if "ts" in event]
    ends = [event["ts"] + event.get("dur", 0)
            for event in events if "ts" in event]
    return (max(ends) - min(starts)) / 1e6 if starts else 0.0


def before_actions_seconds(events):
    """Returns the time until Bazel starts to run actions, or None.

    It contains the start of Bazel, loading and analysis.
    """
    starts = [event["ts"] for event in events if "ts" in event]
    begins = [event["ts"] for event in events
              if event.get("cat") == _PHASE
              and event.get("name") == "Build artifacts"]
    return (min(begins) - min(starts)) / 1e6 if begins else None


def merged_events(events):
    """Returns the number of events that a slim profile has merged."""
    found = (re.match(r"merged (\d+) events", event.get("name", ""))
             for event in events)
    return sum(int(merged.group(1)) for merged in found if merged)


def read_profile(path, root):
    """Reads a profile; `root` is the tree that was built."""
    events = load_events(path)
    return Profile(read_actions(events, root), wall_seconds(events),
                   before_actions_seconds(events), merged_events(events))
