"""The patterns of --per_file_copt: rules of check_style.py.

    for path, line, sentence in copt_patterns(tree): ...

Bazel compares each with paths (nn/ops/add.cc) and with labels (//nn/ops:add.cc)
and says nothing of one that meets neither: so //nn/ops/ does nothing at all.

Under --define=merge=1, which is the default, a library's sources are compiled in
parts (third_party/merge), from files in bazel-out. Each part must have the options that
each of its sources would have alone.
"""

import os
import re

import build_limits
import public_targets
from public_targets import build_files

FILE = ".bazelrc"
MERGE = build_limits.MERGE


class CoptLine:
    """A line "build:NAME --per_file_copt=PATTERN,-PATTERN@OPTIONS"."""

    def __init__(self, number, found):
        self.number = number
        self.command = found.group(1)
        self.patterns = [p.lstrip("+") for p in found.group(2).split(",")]
        self.options = found.group(3)

    def gives(self, name):
        def meets(patterns):
            return any(re.search(pattern, name) for pattern in patterns)

        return (meets(p for p in self.patterns if not p.startswith("-")) and
                not meets(p[1:] for p in self.patterns if p.startswith("-")))


def copt_lines(file):
    for number, line in file.numbered():
        found = re.match(r"([a-z_:]+) [^#]*--per_file_copt=(.*?)@(.*)", line)
        if found:
            yield CoptLine(number, found)


def names_of(package, source):
    """The path and the label of a source, as Bazel has them."""
    return os.path.join(package, source), "//%s:%s" % (package, source)


def sources(tree):
    """The names of every source."""
    packages = {os.path.dirname(path) for path in tree.paths
                if os.path.basename(path) == "BUILD"}
    for path in sorted(tree.paths):
        if not path.endswith((".cc", ".cu")):
            continue
        package = os.path.dirname(path)
        while package and package not in packages:
            package = os.path.dirname(package)
        yield from names_of(package, os.path.relpath(path, package or "."))


def merged_parts(tree):
    """(target, generated file, its sources) of every merged part.

    The sources of a cuda_library are generated too: its parts have none here.
    """
    if MERGE not in tree.paths:
        return
    parts_of = build_files.read_definitions(tree.root, MERGE)["merged_parts"]
    loading = {os.path.dirname(file.path) for file in tree.files
               if os.path.basename(file.path) == "BUILD" and
               any(build_files.AS_NATIVE in line for _, line in file.numbered())}
    for target in public_targets.targets_of(tree):
        if (target.kind in ("cc_library", "cc_merged_test")
                and target.package in loading):
            parts = parts_of(target.name, target.attributes.get("srcs", []),
                             target.attributes.get("apart", []),
                             target.package.startswith("tests/"))
            for generated, part in parts.items():
                yield target, generated, part
        # A cuda_library (third_party/cuda): for the CPU there is a .cc for each.
        kernels = [source for source in target.attributes.get("srcs", [])
                   if target.kind == "rule" and source.endswith(".cu")
                   and source not in target.attributes.get("apart", [])]
        for generated in parts_of(target.name + "_emulated",
                                  [source + ".cc" for source in kernels]):
            yield target, generated, ()


def merging_commands(file):
    """[the commands whose lines hold under a configuration that merges]"""
    lines = {}
    for _, line in file.numbered():
        found = re.match(r"(build(?::\w+)?) (.*)", line)
        if found:
            lines.setdefault(found.group(1), []).append(found.group(2))

    def defined(name):
        return re.findall("--define=merge=(.)", " ".join(lines.get(name, [])))

    for name in lines:
        used = re.findall(r"--config=(\w+)", " ".join(lines[name]))
        if (defined(name) or defined("build"))[-1:] == ["1"]:
            yield {"build", name, *("build:" + config for config in used)}


def options(lines, names):
    """The options of a compile, but for precompiled headers, which change none."""
    return [line.options for line in lines
            if any(line.gives(name) for name in names)
            and not line.options.startswith("-include")]


def copt_patterns(tree):
    file = next((f for f in tree.files if f.path == FILE), None)
    if file is None:
        return
    lines = list(copt_lines(file))
    parts = list(merged_parts(tree))

    def generated_names(target, generated):
        path, label = names_of(target.package, generated)
        return "bazel-out/k8-opt/bin/" + path, label

    names = list(sources(tree))
    for target, generated, _ in parts:
        names.extend(generated_names(target, generated))
    for line in lines:
        for pattern in line.patterns:
            pattern = pattern.lstrip("-")
            if not any(re.search(pattern, name) for name in names):
                yield file.path, line.number, (
                    "the pattern %s meets no source; write it for paths "
                    "(^nn/ops/) or labels (//nn/ops[:/])" % pattern)

    for commands in merging_commands(file):
        holding = [line for line in lines if line.command in commands]
        for target, generated, part in parts:
            of_part = options(holding, generated_names(target, generated))
            for source in part:
                alone = options(holding, names_of(target.package,
                                                  source.lstrip(":")))
                if alone != of_part:
                    yield target.build_file, target.line, (
                        "%s is compiled with %s, and %s, which contains it, with "
                        "%s; write the pattern of .bazelrc as (^|/bin/)%s/, or "
                        "put the source into `apart`"
                        % (source, " ".join(alone) or "no options", generated,
                           " ".join(of_part) or "none", target.package))
