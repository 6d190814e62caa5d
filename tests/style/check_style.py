"""The rules of CONTRIBUTING.md that a machine can check.

    check_style.py ROOT

Prints one line for each finding, "file:line: what is wrong; what to do", and
ends with code 1 if there is any. Reads the files under ROOT and nothing else.

A rule is a function that takes a File and yields (line number, sentence); the
few rules that look at the tree as a whole take a Tree. Exceptions are listed in
tests/style/exceptions.txt, with their reasons.
"""

import os
import re
import sys

import build_limits
import class_sizes
import comments
import copt_patterns
import includes
import messages
import public_targets
import rooms
from includes import code_of

CPP = (".h", ".cc", ".cu", ".cuh")
TEXT = CPP + (".bzl", ".md", ".proto", ".py", ".sh", ".toml", ".txt", ".tpl")
LINES_MAX = 450
WIDTH_MAX = 80

# What a folder's files may include: itself, and what stands below it.
LAYERS = {
    "base": ("base/",),
    "nn": ("nn/", "base/"),
    "comm": ("comm/", "nn/tensor/", "nn/collectives", "base/"),
    "data": ("data/", "nn/tensor/", "nn/random/", "base/"),
    "pipeline": ("pipeline/", "data/", "comm/", "nn/", "base/"),
    "actors": ("actors/", "pipeline/", "data/", "comm/", "nn/", "base/"),
    "troupe": ("troupe/", "actors/", "pipeline/", "data/", "comm/", "nn/",
               "base/"),
    "tools": ("tools/", "troupe/", "actors/", "pipeline/", "data/", "comm/",
              "nn/", "base/"),
    "examples": ("examples/", "troupe/", "actors/", "pipeline/", "data/",
                 "comm/", "nn/", "base/"),
    "tests": ("tests/", "tools/", "troupe/", "actors/", "pipeline/", "data/",
              "comm/", "nn/", "base/"),
}
# Folders whose files may include CAF.
CAF_FOLDERS = ("actors/", "tests/actors/")

# Folders that are built outside of this workspace, checked as such.
WORKSPACES = ("examples/outside", "examples/libtorch_ddp")

# (name, pattern, folders where it is fine, what to do instead)
BANNED = [
    ("sleep",
     r"\b(sleep_for|sleep_until|SleepFor|usleep|nanosleep)\b|(?<![\w.>])sleep\(",
     (), "wait for the event itself, with a deadline"),
    ("random",
     r"std::(rand|srand|random_device|shuffle|uniform_\w+|normal_distribution"
     r"|mt19937\w*|default_random_engine)\b",
     (), "use nn/random: the same numbers on every machine"),
    ("clock",
     r"\b(system_clock::now|gettimeofday)\b",
     ("tools/",), "take the clock through the constructor"),
    ("caf-all", r"caf/(\w+/)?all\.hpp",
     (), "include the headers that are used: this one costs 4 s"),
    ("caf", r"#include\s*[<\"]caf/",
     CAF_FOLDERS, "actors live in actors/; use absl::Status and plain data"),
]


class File:
    """One text file: path relative to the root, and its lines."""

    def __init__(self, root, path):
        self.path = path
        with open(os.path.join(root, path), encoding="utf-8") as text:
            self.lines = text.read().splitlines()

    @property
    def is_cpp(self):
        return self.path.endswith(CPP)

    @property
    def is_header(self):
        return self.path.endswith((".h", ".cuh"))

    def numbered(self):
        return enumerate(self.lines, start=1)


class Tree:
    """All text files under the root, less build outputs and ignored folders."""

    SKIPPED = ("__pycache__", "checkpoints", "peer", "runs")

    def __init__(self, root):
        self.root = root
        self.files = [File(root, path) for path in sorted(self._paths())]
        self.paths = {file.path for file in self.files}

    def _paths(self):
        for folder, folders, names in os.walk(self.root):
            folders[:] = [
                f for f in folders
                if f not in self.SKIPPED and not f.startswith("bazel-")
                and (not f.startswith(".") or f == ".ci")
                and not os.path.islink(os.path.join(folder, f))
                and os.path.relpath(os.path.join(folder, f), self.root)
                not in WORKSPACES
            ]
            for name in names:
                # Of a build whose outputs are deleted, the links bazel-bin and the
                # like lead nowhere.
                if folder == self.root and os.path.islink(
                        os.path.join(folder, name)):
                    continue
                path = os.path.relpath(os.path.join(folder, name), self.root)
                if self._is_text(path):
                    yield path

    def _is_text(self, path):
        name = os.path.basename(path)
        if name in ("BUILD", "WORKSPACE", ".bazelrc") or name.endswith(TEXT):
            return True
        # Scripts without an ending.
        if "." in name:
            return False
        with open(os.path.join(self.root, path), "rb") as content:
            return content.read(2) == b"#!"


def banned_calls(file):
    """Calls that make runs differ, tests slow, or builds slow."""
    if not file.is_cpp:
        return
    for number, line in file.numbered():
        code = line if line.startswith("#include") else code_of(line)
        for name, pattern, fine_in, instead in BANNED:
            found = re.search(pattern, code)
            if found and not file.path.startswith(fine_in or ("\0",)):
                yield number, "%s (%s); %s" % (
                    found.group(0).rstrip("("), name, instead)


def sleeping_scripts(file):
    """Tests wait for what they wait for."""
    if not file.path.startswith("tests/") or not file.path.endswith(
        (".sh", ".py")):
        return
    for number, line in file.numbered():
        if re.search(r"^\s*sleep\s+[\d.$]|\btime\.sleep\(", line):
            yield number, "sleep; wait for the event itself, with a deadline"


def include_guard(file):
    """NN_TENSOR_SHAPE_H_ for nn/tensor/shape.h."""
    if not file.is_header:
        return
    guard = re.sub(r"\W", "_", file.path).upper() + "_"
    for want in ("#ifndef " + guard, "#define " + guard):
        if want not in file.lines:
            yield 1, "include guard; add '%s'" % want
    end = "#endif  // " + guard
    if not file.lines or file.lines[-1] != end:
        yield max(1, len(file.lines)), "last line; make it '%s'" % end


def own_header_first(tree):
    """So every header with a source is compiled before anything else is."""
    for file in tree.files:
        stem, ending = os.path.splitext(file.path)
        if ending not in (".cc", ".cu") or stem + ".h" not in tree.paths:
            continue
        include = '#include "%s.h"' % stem
        first = next((n for n, line in file.numbered()
                      if line.startswith("#include")), None)
        if first is None or file.lines[first - 1] != include:
            yield file.path, first or 1, "own header; begin with '%s'" % include


def layering(file):
    """Includes go downwards only."""
    folder = file.path.split("/")[0]
    if not file.is_cpp or folder not in LAYERS:
        return
    for number, line in file.numbered():
        found = re.match(r'#include "(([a-z_]+)/[^"]*)"', line)
        if not found or found.group(2) not in LAYERS:
            continue
        if not found.group(1).startswith(LAYERS[folder]):
            yield number, "%s/ may not include %s; it may use %s" % (
                folder, found.group(1), ", ".join(LAYERS[folder]))


def room(file):
    return rooms.rooms(file)


def length(file):
    if file.path.endswith(CPP + (".bzl", ".py", ".sh")):
        if len(file.lines) > LINES_MAX:
            yield len(file.lines), "%d lines; at most %d: split the file" % (
                len(file.lines), LINES_MAX)


def width(file):
    if not file.is_cpp:
        return
    in_raw_string = False
    for number, line in file.numbered():
        opens = 'R"' in line
        if len(line) > WIDTH_MAX and not (
                in_raw_string or opens or "://" in line
                or line.startswith(("#include", "#ifndef", "#define",
                                    "#endif"))):
            yield number, "%d columns; at most %d" % (len(line), WIDTH_MAX)
        if opens:
            in_raw_string = True
        if re.search(r'\)\w*"', line):
            in_raw_string = False


def config_words(tree):
    """Libraries name fields; the trainer knows which key sets a field."""
    keys = set()
    for file in tree.files:
        if re.fullmatch(r"tools/trainer/config/\w+_keys\.cc", file.path):
            keys.update(re.findall(r'"([a-z_]+\.[a-z_]+)"', "\n".join(file.lines)))
    if not keys:
        return
    pattern = re.compile(r'"[^"]*(?<![\w.])(%s)(?![\w(])' % "|".join(
        re.escape(key) for key in sorted(keys)))
    for file in tree.files:
        if not file.is_cpp or file.path.startswith(
                ("tools/", "tests/", "examples/")):
            continue
        for number, line in file.numbered():
            found = pattern.search(line)
            if found and not line.startswith(("//", "#include")):
                yield file.path, number, (
                    "%s is the trainer's word; name the field "
                    "(base/field_error.h)" % found.group(1))


def header_comment(file):
    if file.is_header and not (file.lines and file.lines[0].startswith("// ")):
        yield 1, ("no comment at the top; say what the header is for and show "
                  "its use")


def usage_lines(file):
    """Code at the top of a header is not wrapped in the middle of a bracket."""
    if not file.is_header:
        return
    pairs = {")": "(", "]": "[", "}": "{"}
    opened = []  # (bracket, line number)
    for number, line in file.numbered():
        if not line.startswith("//   "):
            if opened:
                yield opened[0][1], ("usage: this bracket is never closed; "
                                     "write code that compiles")
            opened = []
            if not line.startswith("//"):
                return
            continue
        for char in code_of(line[2:]):
            if char in "([{":
                opened.append((char, number))
            elif char in pairs:
                if not opened or opened.pop()[0] != pairs[char]:
                    yield number, ("usage: nothing opens this '%s'; write code "
                                   "that compiles" % char)
                    return


def fragment(file):
    return comments.fragments(file)


def unfinished(file):
    # Written in pieces, since this file is checked too.
    pattern = r"\b(%s)\b" % "|".join(["TO" + "DO", "FIX" + "ME", "X" * 3,
                                      "HA" + "CK"])
    for number, line in file.numbered():
        found = re.search(pattern, line)
        if found:
            yield number, "%s; do it now or open an issue" % found.group(0)


def machine_paths(file):
    pattern = r"(?<![\w.}~*])/(%s)/" % "|".join(["ho" "me", "ro" "ot", "wo" "rk"])
    for number, line in file.numbered():
        found = re.search(pattern, line)
        if found:
            yield number, "%s is a path of one machine; use a relative one" % (
                found.group(0))


def links(tree):
    """Relative links between Markdown pages lead somewhere."""
    for file in tree.files:
        if not file.path.endswith(".md"):
            continue
        for number, line in file.numbered():
            for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", line):
                if "://" in target or target.startswith("mailto:"):
                    continue
                path = os.path.join(os.path.dirname(file.path), target)
                if not os.path.exists(os.path.join(tree.root, path)):
                    yield file.path, number, "no such file: " + target


def readmes(tree):
    """Every top folder says what lives in it."""
    for folder in sorted({p.split("/")[0] for p in tree.paths if "/" in p}):
        if not folder.startswith(".") and folder + "/README.md" not in tree.paths:
            yield folder + "/README.md", 1, "missing; say what lives in here"


def dead_files(tree):
    """Every source file is named by the BUILD file of its package."""
    named = {}
    for file in tree.files:
        if os.path.basename(file.path) == "BUILD":
            # In a list comprehension, "%s" and "a" + x + "b" stand for any, in
            # a glob "*".
            build = re.sub(r'" \+ \w+ \+ "', "%s", "\n".join(file.lines))
            names = re.findall(r'"([^"]+)"', build)
            named[os.path.dirname(file.path)] = re.compile("|".join(
                re.escape(n).replace("%s", ".*").replace(r"\*", "[^/]*")
                for n in names))
    for file in tree.files:
        if not file.is_cpp:
            continue
        package = os.path.dirname(file.path)
        while package and package not in named:
            package = os.path.dirname(package)
        name = os.path.relpath(file.path, package or ".")
        if package not in named or not named[package].fullmatch(name):
            yield file.path, 1, "in no BUILD file; add it to one or delete it"


def visibility(tree):
    return public_targets.public_targets(tree, LAYERS)


def include(tree):
    return includes.includes(tree)


def error_texts(tree):
    return messages.messages(tree)


def patterns(tree):
    return copt_patterns.copt_patterns(tree)


def limits(tree):
    return build_limits.build_limits(tree)


def small_rooms(tree):
    return rooms.room_sizes(tree)


def small_classes(tree):
    return class_sizes.class_sizes(tree)


FILE_RULES = [banned_calls, sleeping_scripts, include_guard, layering, room,
              length, width, header_comment, usage_lines, fragment, unfinished,
              machine_paths]
TREE_RULES = [own_header_first, config_words, links, readmes, dead_files,
              visibility, include, error_texts, patterns, limits, small_rooms,
              small_classes]


def read_exceptions(tree):
    """Returns {(rule, path): (line of the list, exact length or None)}.

    A line is "rule path reason", or "length path lines reason".
    """
    exceptions = {}
    for file in tree.files:
        if file.path != "tests/style/exceptions.txt":
            continue
        for number, line in file.numbered():
            if line.strip() and not line.startswith("#"):
                rule, path, rest = (line.split(None, 2) + ["", ""])[:3]
                lines = int(rest.split()[0]) if rule == "length" else None
                exceptions[rule, path] = (number, lines)
    return exceptions


def findings(tree):
    """Yields (rule, path, line number, sentence)."""
    for rule in FILE_RULES:
        for file in tree.files:
            for number, sentence in rule(file):
                yield rule.__name__, file.path, number, sentence
    for rule in TREE_RULES:
        for path, number, sentence in rule(tree):
            yield rule.__name__, path, number, sentence


def check(root):
    """Returns the findings as lines of text, exceptions taken out."""
    tree = Tree(root)
    exceptions = read_exceptions(tree)
    used = set()
    report = []
    for rule, path, number, sentence in findings(tree):
        line, exact = exceptions.get((rule, path), (None, None))
        if line is None or (exact is not None and number > exact):
            report.append("%s:%d: %s" % (path, number, sentence))
            continue
        if exact is not None and number < exact:
            report.append("tests/style/exceptions.txt:%d: %s has %d lines now; "
                          "lower its number" % (line, path, number))
        used.add((rule, path))
    for (rule, path), (line, _) in exceptions.items():
        if (rule, path) not in used and not any(
                r.startswith(path + ":") for r in report):
            report.append("tests/style/exceptions.txt:%d: %s no longer breaks "
                          "the rule %s; delete the line" % (line, path, rule))
    return sorted(report)


def main():
    root = sys.argv[1]
    report = check(root)
    for workspace in WORKSPACES:
        report += [workspace + "/" + line
                   for line in check(os.path.join(root, workspace))]
    for line in report:
        print(line)
    return 1 if report else 0


if __name__ == "__main__":
    sys.exit(main())
