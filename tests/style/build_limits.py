"""The size of a build has limits: a rule of check_style.py.

    for path, line, sentence in build_limits(tree): ...

Every source that a target lists is a compile of the ordinary build (those of a
cc_merged_test are compiled in parts), and every test is a program to link and to
start. Their numbers are taken from the BUILD files, by top folder, and compared
with the limits in tests/style/build_limits.txt.
"""

import collections

import public_targets
from public_targets import build_files

LIMITS = "tests/style/build_limits.txt"
FOLDER_WORDS = ("sources", "tests")
# A limit is at most this far above the number that it holds.
ROOM_MAX = 30
MERGE = build_files.AS_NATIVE[len("//"):].replace(":", "/")
# Rules that compile nothing.
_NO_COMPILES = ("exports_files", "filegroup", "genrule", "sh_")


def count(targets, parts_of=None):
    """Returns {top folder: Counter with the sources and tests of its targets}.

    A source that two targets list counts twice, since it is compiled twice.
    `parts_of` is merged_parts() of third_party/merge, if a target needs it.
    """
    counts = collections.defaultdict(collections.Counter)
    for target in targets:
        folder = counts[target.package.split("/")[0] or "."]
        if target.kind.endswith("_test"):
            folder["tests"] += 1
        if not target.kind.startswith(_NO_COMPILES):
            sources = target.attributes.get("srcs", [])
            if target.kind == "cc_merged_test":
                sources = parts_of(target.name, sources, in_tests=True)
            folder["sources"] += sum(
                source.endswith((".cc", ".cu")) for source in sources)
    return {folder: number for folder, number in counts.items()
            if any(number.values())}


def read_limits(file):
    """Returns {folder: (line number, {"sources": limit, "tests": limit})}."""
    limits = {}
    for number, line in file.numbered():
        if line.strip() and not line.startswith("#"):
            folder, *values = line.split()[:1 + len(FOLDER_WORDS)]
            limits[folder] = (number, dict(zip(FOLDER_WORDS, map(int, values))))
    return limits


def build_limits(tree):
    file = next((f for f in tree.files if f.path == LIMITS), None)
    if file is None:
        return
    limits = read_limits(file)
    macros = {}
    if MERGE in tree.paths:
        macros = build_files.read_definitions(tree.root, MERGE)
    counts = count(public_targets.targets_of(tree), macros.get("merged_parts"))
    for folder in sorted(counts.keys() - limits.keys()):
        yield LIMITS, 1, "%s/ has %s; add a line for it" % (
            folder, " and ".join("%d %s" % (counts[folder][word], word)
                                 for word in FOLDER_WORDS))
    for folder, (line, allowed) in limits.items():
        for word, limit in allowed.items():
            number = counts.get(folder, {}).get(word, 0)
            if number > limit:
                yield LIMITS, line, (
                    "%s/ has %d %s, at most %d; put them into a source or test "
                    "that is there, or raise the limit and give the reason in "
                    "the change" % (folder, number, word, limit))
            elif number < limit - ROOM_MAX:
                yield LIMITS, line, (
                    "%s/ has %d %s, far fewer than %d; lower the limit to the "
                    "next multiple of 10" % (folder, number, word, limit))
