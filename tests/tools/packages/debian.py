"""The Debian packages of this machine: what they depend on and which files they own.

    debian = Debian(run_dpkg_query())
    wanted = debian.closure(["g++", "zlib1g-dev"])  # all that apt installs for them
    owners(["/usr/include/zlib.h"])  # {"/usr/include/zlib.h": {"zlib1g-dev"}}
    listed = read_list("tools/lib/packages.txt")    # ["bazel-bootstrap", ...]

Everything is read from dpkg's database; nothing asks a package archive.
"""

import collections
import os
import re
import subprocess

# What every fresh Debian 12 has beside its required packages, as README.md
# assumes: the clone was made with git, from a host with a certificate.
ASSUMED = ("apt", "ca-certificates", "git", "python3")

_FIELDS = ("Package", "db:Status-Status", "Essential", "Priority",
           "Pre-Depends", "Depends", "Provides")
# Folders that Debian 12 has twice: /bin is a link to /usr/bin.
_MERGED = re.compile(r"^/usr(?=/(bin|sbin|lib|lib32|lib64|libx32)(/|$))")


def run_dpkg_query():
    """The fields of all packages, a line for each."""
    form = "\t".join("${%s}" % field for field in _FIELDS) + "\n"
    return subprocess.run(["dpkg-query", "-W", "-f=" + form], check=True,
                          capture_output=True, text=True).stdout


def read_list(path):
    """The packages that a list of tools/lib names."""
    with open(path, encoding="utf-8") as text:
        lines = [line.strip() for line in text]
    return [line for line in lines if line and not line.startswith("#")]


class Debian:
    """The installed packages, from the output of run_dpkg_query()."""

    def __init__(self, fields):
        self._needs = {}  # package -> groups of alternatives
        self._providers = collections.defaultdict(list)
        self._base = set(ASSUMED)
        for line in fields.splitlines():
            name, status, essential, priority, before, after, provides = (
                line.split("\t"))
            if status != "installed":
                continue
            self._needs[name] = _groups(before) + _groups(after)
            for group in _groups(provides):
                self._providers[group[0]].append(name)
            if essential == "yes" or priority == "required":
                self._base.add(name)

    def is_installed(self, package):
        return package in self._needs

    def closure(self, listed):
        """Packages that a bare Debian 12 has once the listed ones are installed.

        Follows Depends and Pre-Depends, but not Recommends, as tools/setup
        does. Listed packages that are not installed here add nothing. Of the
        alternatives `a | b`, the first one that is installed here counts,
        unless another dependency brings one of them anyway.
        """
        found, groups, choices = set(), [], []
        for package in [*self._base, *listed]:
            if self.is_installed(package):
                found.add(package)
                groups += self._needs[package]
        while groups or choices:
            if groups:
                candidates = self._candidates(groups.pop())
                if len(candidates) > 1:
                    choices.append(candidates)
                    continue
            else:
                candidates = choices.pop()
                if found.intersection(candidates):
                    continue
            for package in candidates[:1]:
                if package not in found:
                    found.add(package)
                    groups += self._needs[package]
        return found

    def _candidates(self, group):
        """Installed packages that satisfy `a | b`, those of `a` first."""
        names = []
        for name in group:
            names += [name] if self.is_installed(name) else []
            names += self._providers[name]
        return list(dict.fromkeys(names))


def _groups(field):
    """"a (>= 1), b | c:any" -> [["a"], ["b", "c"]]"""
    return [[re.split(r"[\s(:]", name.strip())[0] for name in group.split("|")]
            for group in field.split(",") if group.strip()]


def owners(paths):
    """{path: packages that own it}; none for a file that no package has.

    A link that no package has, such as those of update-alternatives, has the
    owners of the file behind it.
    """
    own = {path: _names_of(path) for path in paths}
    behind = {path: _names_of(os.path.realpath(path)) for path in paths}
    asked = sorted(set().union(*own.values(), *behind.values()))
    owned = collections.defaultdict(set)
    # The kernel limits a command line: 1000 paths fit at every length.
    for first in range(0, len(asked), 1000):
        for path, packages in _ask_for_owners(asked[first:first + 1000]):
            owned[path].update(packages)

    def of(names):
        return set().union(*(owned[name] for name in names))

    return {path: of(own[path]) or of(behind[path]) for path in paths}


def _names_of(path):
    """All names under which dpkg may know a file."""
    # realpath() of the folder alone: the last part may be a link of a package.
    folder, name = os.path.split(path)
    whole = os.path.join(os.path.realpath(folder), name)
    return {path, whole, _MERGED.sub("", whole)}


def _ask_for_owners(paths):
    # dpkg takes some characters for a pattern.
    patterns = [re.sub(r"([\\*?\[])", r"\\\1", path) for path in paths]
    answer = subprocess.run(["dpkg-query", "-S", "--", *patterns], check=False,
                            capture_output=True, text=True).stdout
    for line in answer.splitlines():
        # "gcc-12, libc6:amd64: /lib/path"; a diversion owns nothing.
        packages, separator, path = line.partition(": ")
        if separator and not line.startswith("diversion "):
            yield path, [name.split(":")[0] for name in packages.split(", ")]
