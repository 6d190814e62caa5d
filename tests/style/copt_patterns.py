"""The patterns of --per_file_copt: a rule of check_style.py.

    for path, line, sentence in copt_patterns(tree): ...

Bazel compares each with paths (nn/ops/add.cc) and with labels (//nn/ops:add.cc)
and says nothing of one that meets neither: so //nn/ops/ does nothing at all.
"""

import os
import re

FILE = ".bazelrc"


def sources(tree):
    """"path label" of every source, each as Bazel has it."""
    packages = {os.path.dirname(path) for path in tree.paths
                if os.path.basename(path) == "BUILD"}
    for path in sorted(tree.paths):
        if not path.endswith((".cc", ".cu")):
            continue
        package = os.path.dirname(path)
        while package and package not in packages:
            package = os.path.dirname(package)
        yield path, "//%s:%s" % (package, os.path.relpath(path, package or "."))


def copt_patterns(tree):
    names = [name for pair in sources(tree) for name in pair]
    for file in tree.files:
        if file.path != FILE:
            continue
        for number, line in file.numbered():
            found = re.search(r"^[^#]*--per_file_copt=(.*?)@", line)
            for pattern in found.group(1).split(",") if found else ():
                pattern = pattern.lstrip("+-")
                if not any(re.search(pattern, name) for name in names):
                    yield file.path, number, (
                        "the pattern %s meets no source; write it for paths "
                        "(^nn/ops/) or labels (//nn/ops[:/])" % pattern)
