"""What other workspaces see of this one: rules of check_style.py.

    for path, line, sentence in public_targets(tree): ...

The list of public targets is in docs/using.md, for the user; the BUILD files
must agree with it, and the libraries of tools/package are made of them. A header
of a public target includes only such headers, and examples depend only on such
targets. Since Bazel lets everybody use a public
target, the layers are checked here on the labels too.
"""

import functools
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../../tools/lib"))
import build_files

PAGE = "docs/using.md"
HEADING = "## Public targets"
# The libraries of tools/package, and the folders whose targets each has.
ARCHIVES = {
    "//tools/lib:troupe_core": ("base", "comm", "data", "nn", "pipeline"),
    "//tools/lib:troupe": ("actors", "troupe"),
}
# Public for the build, not for users: stand-ins that are repositories of their
# own, and what @debian refers to.
OF_THE_BUILD = ("//third_party/abseil_tsan:if_tsan",
                "//third_party/merge:",
                "//third_party/pch:",
                "//third_party/remote_coverage_tools:")
# Public, but not in the archive, which has no code for GPUs.
NOT_IN_ARCHIVE = {"//comm/nccl:for_programs", "//nn/kernels/cuda:cuda"}


def listed_targets(tree):
    """{label: line} of the list in PAGE, or None where there is no page."""
    page = next((f for f in tree.files if f.path == PAGE), None)
    if page is None:
        return None
    listed = {}
    inside = False
    for number, line in page.numbered():
        if line.startswith("#"):
            inside = line == HEADING
        if inside and line.startswith("|"):
            for label in re.findall(r"`@troupe(//[^`]+)`", line):
                listed[build_files.full_label("", label)] = number
    return listed


@functools.lru_cache(maxsize=1)  # for several rules that read the same tree
def targets_of(tree):
    packages = [os.path.dirname(p) for p in sorted(tree.paths)
                if os.path.basename(p) == "BUILD"]
    return build_files.read_targets(tree.root, packages)


def list_agrees(targets, listed):
    """Public is what the page lists, and nothing else."""
    public = {}
    for target in targets:
        if target.is_public and not target.label.startswith(OF_THE_BUILD):
            public[target.label] = target
    for label, target in sorted(public.items()):
        if label not in listed:
            yield target.build_file, target.line, (
                "%s is public; list it in %s or give it a visibility"
                % (label, PAGE))
    for label, line in sorted(listed.items()):
        if label not in public:
            yield PAGE, line, "%s is not public; take it from the list" % label


def archive_agrees(targets, listed):
    """The libraries of tools/package are made of what the page lists."""
    for target in targets:
        if target.label in ARCHIVES:
            folders = ARCHIVES[target.label]
            has = set(target.labels("deps"))
            wanted = {label for label in set(listed) - NOT_IN_ARCHIVE
                      if re.match("//(%s)[/:]" % "|".join(folders), label)}
            for label in sorted(has.symmetric_difference(wanted)):
                yield target.build_file, target.line, (
                    "deps of %s: %s %s; it has what %s lists of %s"
                    % (target.label, "drop" if label in has else "add", label,
                       PAGE, ", ".join(folders)))


def headers_are_closed(tree, targets, listed):
    """A public header includes public headers only."""
    public = {header for target in targets if target.label in listed
              for header in target.files("hdrs")}
    for file in tree.files:
        if file.path not in public:
            continue
        for number, line in file.numbered():
            found = re.match(r'#include "([^"]+)"', line)
            if found and found.group(1) in tree.paths - public:
                yield file.path, number, (
                    "a public header includes %s, which no public target has"
                    % found.group(1))


def dependencies(targets):
    for target in targets:
        if target.kind.startswith(("cc_", "cuda_")):
            for label in target.labels("deps"):
                if label.startswith("//"):
                    yield target, label


def examples_use_public(targets, listed):
    for target, label in dependencies(targets):
        own = label.startswith("//%s:" % target.package)
        if target.package.startswith("examples/") and not own and (
                label not in listed):
            yield target.build_file, target.line, (
                "an example depends on %s, which is not public" % label)


def layers_of_labels(targets, layers):
    """Dependencies go downwards only."""
    for target, label in dependencies(targets):
        folder = target.package.split("/")[0]
        path = label[2:].replace(":", "/")
        if (folder in layers and path.split("/")[0] in layers
                and not path.startswith(layers[folder])):
            yield target.build_file, target.line, (
                "%s/ may not depend on %s; it may use %s"
                % (folder, label, ", ".join(layers[folder])))


def public_targets(tree, layers):
    """All of the above."""
    targets = targets_of(tree)
    yield from layers_of_labels(targets, layers)
    listed = listed_targets(tree)
    if listed is None:
        return
    yield from list_agrees(targets, listed)
    yield from archive_agrees(targets, listed)
    yield from headers_are_closed(tree, targets, listed)
    yield from examples_use_public(targets, listed)
