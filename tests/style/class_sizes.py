"""Classes stay small: a rule of check_style.py.

    for path, line, sentence in class_sizes(tree): ...

    class_sizes.py FILE...      # prints the classes of these files that are too large

A class or struct has at most MEMBERS_MAX data members of its own (cpp_classes.py says
which they are). And its sources have at most LINES_MAX lines: its body, its functions
that other files define, and all else in a file that they are a third of, such as the
helpers of a class.

class_size_exceptions.txt has the classes that are larger, with their exact size and a
reason. It may only shrink.
"""

import collections
import re
import sys

import by_hand
from cpp_classes import Source

MEMBERS_MAX = 15
LINES_MAX = 450
EXCEPTIONS = "tests/style/class_size_exceptions.txt"
CPP = (".h", ".cc", ".cu", ".cuh")


def sizes(sources):
    """Returns [(Class, number of lines of its sources)] of all classes."""
    by_name = collections.defaultdict(list)
    for source in sources:
        for kind in source.classes:
            by_name[re.sub("<.*", "", kind.name)].append(kind)
    lines = collections.Counter()
    for source in sources:
        here = collections.Counter()
        for (scope, name), number in source.defines.items():
            kinds = _look_up(by_name, scope, name)
            # Of several with the name, for example of a stand-in, that which the
            # file sees.
            if len(kinds) > 1:
                kinds = [kind for kind in kinds if kind.path == source.path
                         or kind.path in source.includes] or kinds
            here.update({kind: number for kind in kinds})
        for kind, number in here.items():
            if kind.path != source.path:
                lines[kind] += source.length if 3 * number >= source.length else number
    return [(kind, kind.lines + lines[kind])
            for source in sources for kind in source.classes]


def _look_up(by_name, scope, name):
    while scope and scope + "::" + name not in by_name:
        scope = scope.rpartition("::")[0]
    return by_name.get(scope + "::" + name if scope else name, [])


def findings(sources):
    """Yields (Class, "members" or "lines", number, limit) of those too large."""
    for kind, lines in sizes(sources):
        for what, number, limit in (("members", kind.members, MEMBERS_MAX),
                                    ("lines", lines, LINES_MAX)):
            if number > limit:
                yield kind, what, number, limit


def _short(name):
    """The name without its namespaces, which begin in lower case or with (."""
    parts = re.sub(r"\([^)]*\)", "()", name).split("::")
    while len(parts) > 1 and (parts[0][0].islower() or parts[0] == "()"):
        parts.pop(0)
    return "::".join(parts)


def _sentence(kind, what, number, limit):
    return "%s has %d %s, at most %d; give %s" % (
        _short(kind.name), number, "data members" if what == "members" else
        "lines in its sources", limit, "what belongs together a class of its own")


def read_exceptions(tree):
    """Returns {(path, class, "members" or "lines"): (line of the list, number)}."""
    exceptions = {}
    for file in tree.files:
        if file.path != EXCEPTIONS:
            continue
        for number, line in enumerate(file.lines, start=1):
            if line.strip() and not line.startswith("#"):
                path, name, what, count = line.split()[:4]
                exceptions[path, name, what] = (number, int(count))
    return exceptions


def class_sizes(tree):
    """Yields (path, line number, sentence)."""
    exceptions = read_exceptions(tree)
    sources = [Source(file.path, file.lines) for file in tree.files
               if file.path.endswith(CPP)]
    for kind, what, number, limit in findings(sources):
        line, allowed = exceptions.pop((kind.path, _short(kind.name), what), (0, 0))
        if number > allowed:
            yield kind.path, kind.first_line, _sentence(kind, what, number,
                                                        allowed or limit)
        elif number < allowed:
            yield EXCEPTIONS, line, "%s has %d %s now; lower its number" % (
                _short(kind.name), number, what)
    for (path, name, what), (line, _) in exceptions.items():
        yield EXCEPTIONS, line, "%s of %s keeps the limit of %s; delete the line" % (
            name, path, what)


def findings_of_one(file):
    for kind, what, number, limit in findings([Source(file.path, file.lines)]):
        yield kind.first_line, _sentence(kind, what, number, limit)


if __name__ == "__main__":
    sys.exit(by_hand.main(findings_of_one, sys.argv[1:]))
