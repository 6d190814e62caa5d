"""Reads the BUILD files of a tree without Bazel.

    for target in read_targets(root):
        target.label                  # "//comm:communicator"
        target.labels("deps")         # ["//base:event", "@debian//:absl", ...]
        target.files("hdrs")          # ["comm/communicator.h", ...]
        target.visibility             # ["//:above_comm"]

The Starlark of these files is also Python: a file is executed with functions
that only record their calls. A select() stands for all of its branches, a
glob() for the files that are there.
"""

import ast
import builtins
import glob
import os
import sys

# Macros with the name of the native rule that they stand for.
AS_NATIVE = "//third_party/merge:defs.bzl"
PUBLIC = "//visibility:public"
PRIVATE = "//visibility:private"


class Target:
    """A call of a rule: its place in the file, and its attributes."""

    def __init__(self, package, kind, line, attributes, default_visibility):
        self.package = package
        self.kind = kind
        self.line = line
        self.attributes = attributes
        self.name = attributes.get("name", "")
        self.label = "//%s:%s" % (package, self.name)
        self.visibility = attributes.get("visibility", default_visibility)

    @property
    def is_public(self):
        return PUBLIC in self.visibility

    @property
    def build_file(self):
        return os.path.join(self.package, "BUILD")

    def labels(self, attribute):
        """Returns the attribute's values as full labels."""
        return [full_label(self.package, value)
                for value in self.attributes.get(attribute, [])]

    def files(self, attribute):
        """Returns the attribute's source files, relative to the root."""
        return [os.path.join(self.package, value)
                for value in self.attributes.get(attribute, [])
                if not value.startswith(("//", "@", ":"))]


def full_label(package, label):
    """Completes a label: ":a" -> "//package:a", "//b/c" -> "//b/c:c"."""
    if label.startswith(":"):
        return "//%s%s" % (package, label)
    if not label.startswith(("//", "@")):
        return "//%s:%s" % (package, label)
    if ":" not in label.split("//")[1]:
        return "%s:%s" % (label, label.split("/")[-1])
    return label


class _Anything:
    """Stands for any function that a .bzl file takes from Bazel."""

    def __call__(self, *args, **kwargs):
        return self

    def __getattr__(self, name):
        return self


class _Reader:
    """Executes files and collects the targets that they declare."""

    def __init__(self, root):
        self._root = root
        self._package = ""
        self._default_visibility = [PRIVATE]
        self.targets = []

    def read_package(self, package):
        self._package = package
        self._default_visibility = [PRIVATE]
        self._execute(os.path.join(package, "BUILD"))

    def read_definitions(self, path):
        return self._execute(path)

    def _execute(self, path):
        """Returns the names that the file defines."""
        with open(os.path.join(self._root, path), encoding="utf-8") as text:
            tree = ast.parse(text.read(), path)
        names = {
            "exports_files": self._exports_files,
            "glob": self._glob,
            "load": lambda *args: None,
            "package": self._set_package,
            "rule": lambda **kwargs: self._rule("rule"),
            "select": lambda branches: sum(branches.values(), []),
        }
        for node in tree.body:
            names.update(self._loaded_by(node))
        is_bzl = path.endswith(".bzl")
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and not hasattr(builtins, node.id):
                names.setdefault(node.id,
                                 _Anything() if is_bzl else self._rule(node.id))
        exec(compile(tree, path, "exec"), names)
        return names

    def _loaded_by(self, node):
        """Returns the names that a load("//a:b.bzl", "name", ...) defines."""
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
                and getattr(node.value.func, "id", "") == "load"):
            return {}
        label, *wanted = [arg.value for arg in node.value.args]
        if label == AS_NATIVE:
            return {}
        path = full_label(self._package, label).lstrip("/").replace(":", "/")
        defined = {}
        if os.path.exists(os.path.join(self._root, path)):
            defined = self._execute(path)
        return {name: defined.get(name, _Anything()) for name in wanted}

    def _rule(self, kind):
        def declare(*args, **attributes):
            self._note(kind, attributes)
        return declare

    def _note(self, kind, attributes):
        frame = sys._getframe(1)
        while not frame.f_code.co_filename.endswith("BUILD"):
            frame = frame.f_back
        self.targets.append(Target(self._package, kind, frame.f_lineno,
                                   attributes, self._default_visibility))

    def _set_package(self, **attributes):
        self._default_visibility = attributes.get("default_visibility",
                                                  self._default_visibility)

    def _glob(self, include, exclude=(), **_):
        found = self._matches(include) - self._matches(exclude)
        return sorted(path for path in found if not self._in_subpackage(path))

    def _matches(self, patterns):
        """Returns the files of the package's folder that match one of them."""
        folder = os.path.join(self._root, self._package)
        return {os.path.relpath(path, folder)
                for pattern in patterns
                for path in glob.glob(
                    os.path.join(glob.escape(folder), pattern), recursive=True)
                if os.path.isfile(path)}

    def _in_subpackage(self, path):
        folder = os.path.dirname(path)
        while folder:
            if os.path.exists(os.path.join(self._root, self._package, folder,
                                           "BUILD")):
                return True
            folder = os.path.dirname(folder)
        return False

    # An exported file without a visibility is public.
    def _exports_files(self, files, visibility=(PUBLIC,)):
        for name in files:
            self._note("exports_files", {"name": name,
                                         "visibility": list(visibility)})


def read_definitions(root, path):
    """Returns the functions and constants of a .bzl file, by name."""
    return _Reader(root).read_definitions(path)


def read_targets(root, packages):
    """Returns the targets of `packages`, folders relative to `root`."""
    reader = _Reader(root)
    for package in packages:
        reader.read_package(package)
    return reader.targets
