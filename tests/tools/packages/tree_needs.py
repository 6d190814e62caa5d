"""What a tree asks of the system when its scripts and tests run.

    for need in read_needs(read_tree(root, paths)):
        need.kind     # "program", "module" (of Python) or "path"
        need.name     # "setpriv", "unittest", "/usr/share/bazel"
        need.where    # "tests/tools/permissions_test.sh:7"

This finds
- programs in the place of a command in shell scripts, and in the commands of
  BUILD and .bzl files;
- programs that stand first in a list, or first among the arguments of a call,
  in Python: ["mount", ...], shutil.which("gdb");
- the commands in the strings of C++ files that call posix_spawn(), popen() and
  the like, or include the header of one that does;
- modules that Python imports, or that a script runs by `python3 -m`;
- absolute paths of the system in all of these, interpreters in the first line
  of scripts too.
Not every name is one of a program; whoever looks it up finds out. Builtins of
the shell are left out.
"""

import ast
import collections
import os
import re
import subprocess

from shell_commands import Script

Need = collections.namedtuple("Need", ["kind", "name", "where"])

# bash's own, and its words; a program of the same name is not started.
BUILTINS = frozenset(subprocess.run(
    ["bash", "-c", "compgen -b; compgen -k"], check=True, capture_output=True,
    text=True).stdout.split())
CPP = (".h", ".cc", ".cu", ".cuh")
_STARTS_PROGRAMS = re.compile(
    r"\b(posix_spawnp?|execv\w*|execl\w*|popen|std::system)\(")
_CPP_STRING = re.compile(r'(?<!#include )"((?:[^"\\\n]|\\.)*)"')
_SYSTEM_PATH = re.compile(
    r"""["'\s=](/(?:usr|etc|opt|lib|lib64|bin|sbin|var)/[\w./+-]*\w)""")
_MODULE_RUN = re.compile(r"\bpython3?\s+-m\s+(\w+)")


class TreeFile:
    """One text file of the tree."""

    def __init__(self, root, path):
        self.path = path
        with open(os.path.join(root, path), encoding="utf-8") as text:
            self.text = text.read()
        self.first_line = self.text.split("\n", 1)[0]
        name = os.path.basename(path)
        self.is_python = path.endswith(".py") or self._is_run_by("python")
        self.is_shell = path.endswith(".sh") or self._is_run_by("sh")
        self.is_build = name == "BUILD" or name.endswith((".bzl", ".BUILD"))
        self.is_cpp = name.endswith(CPP)

    def _is_run_by(self, interpreter):
        return bool(re.match(r"#!.*\b\w*%s[\d.]*$" % interpreter,
                             self.first_line))

    def where(self, line):
        return "%s:%d" % (self.path, line)

    def line_of(self, index):
        return self.text.count("\n", 0, index) + 1


def read_tree(root, paths):
    """The files that may need a program, a module or a path."""
    files = []
    for path in paths:
        if os.path.splitext(path)[1] in ("", ".py", ".sh", ".bzl", ".BUILD",
                                         *CPP):
            files.append(TreeFile(root, path))
    return files


def read_needs(files):
    """All needs of these files, each once per file."""
    needs = {}
    for need in [*_of_shell(files), *_of_python(files), *_of_builds(files),
                 *_of_cpp(files), *_of_paths(files)]:
        path = need.where.rsplit(":", 1)[0]
        needs.setdefault((need.kind, need.name, path), need)
    return list(needs.values())


def shell_scripts(files):
    """[(file, Script)], with the wrappers of each script known to all."""
    shell = [file for file in files if file.is_shell]
    wrappers = set().union(*(Script(file.text).wrappers for file in shell))
    return [(file, Script(file.text, wrappers)) for file in shell]


def _of_shell(files):
    scripts = shell_scripts(files)
    functions = set().union(*(script.functions for _, script in scripts))
    for file, script in scripts:
        for name, line in script.commands.items():
            if name not in functions | BUILTINS:
                yield Need("program", name, file.where(line))
        for run in _MODULE_RUN.finditer(file.text):
            yield Need("module", run.group(1),
                       file.where(file.line_of(run.start())))


def _of_python(files):
    for file in files:
        if not file.is_python:
            continue
        for node in ast.walk(ast.parse(file.text, file.path)):
            for kind, name in _of_node(node):
                yield Need(kind, name, file.where(node.lineno))


def _of_node(node):
    if isinstance(node, ast.Import):
        for each in node.names:
            yield "module", each.name
    elif isinstance(node, ast.ImportFrom) and node.level == 0:
        yield "module", node.module
    elif isinstance(node, (ast.List, ast.Tuple)):
        yield from _string(node.elts)
    elif isinstance(node, ast.Call):
        yield from _string(node.args)


def _string(nodes):
    """The first of these nodes, if it is one word in quotes."""
    if nodes and isinstance(nodes[0], ast.Constant):
        value = nodes[0].value
        if isinstance(value, str) and re.fullmatch(r"[\w.+-]+", value):
            yield "program", value


def _of_builds(files):
    for file in files:
        if not file.is_build:
            continue
        tree = ast.parse(file.text, file.path)
        assigned = collections.defaultdict(list)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        assigned[target.id].append(node.value)
        for node in ast.walk(tree):
            if (isinstance(node, ast.keyword) and
                    node.arg in ("cmd", "command")):
                for value in assigned.get(getattr(node.value, "id", None),
                                          [node.value]):
                    script = Script(_command_text(value))
                    for name in script.commands.keys() - BUILTINS:
                        yield Need("program", name, file.where(value.lineno))


def _command_text(node):
    """A shell command of Starlark, with Bazel's own variables filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = re.sub(r"\$\((location|execpath|rootpath)s? [^)]*\)|"
                      r"\$\([A-Z_]+\)|\$[<@]", "./file", node.value)
        return text.replace("$$", "$").replace("%%", "%")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _command_text(node.left) + _command_text(node.right)
    if isinstance(node, ast.BinOp):  # "..." % (...)
        return _command_text(node.left)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _command_text(node.func.value)  # "...".format(...)
    return ""


def _of_cpp(files):
    sources = [file for file in files if file.is_cpp]
    starting = {os.path.splitext(file.path)[0] for file in sources
                if _STARTS_PROGRAMS.search(file.text)}
    includes = {'#include "%s.h"' % path for path in starting}
    for file in sources:
        if (os.path.splitext(file.path)[0] in starting or
                any(include in file.text for include in includes)):
            for string in _CPP_STRING.finditer(file.text):
                for name in Script(string.group(1)).commands.keys() - BUILTINS:
                    if len(name) > 1:  # "w" is a mode of fopen()
                        yield Need("program", name,
                                   file.where(file.line_of(string.start())))


def _of_paths(files):
    for file in files:
        for number, line in enumerate(file.text.splitlines(), start=1):
            for found in _SYSTEM_PATH.finditer(
                    line.replace("#!", "=") if number == 1 else line):
                yield Need("path", found.group(1), file.where(number))
