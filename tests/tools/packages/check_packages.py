"""Finds what a tree needs of Debian packages that no list of tools/lib names.

    /usr/bin/python3 check_packages.py ROOT

A machine that has such a package hides that a fresh Debian 12 does not build,
or does not pass. The lists bring what apt installs for them; a header, library,
program, Python module or other file of any other package is a finding. Prints a
line for each, "place: what, of which package; what to do", and ends with code 1
if there is any. Reads ROOT and the database of dpkg, takes a few seconds, and
needs no network. Modules are looked up as the Python finds them that runs this.
"""

import functools
import importlib.util
import os
import re
import sys

import compiled_needs
import debian
import tree_needs

PACKAGES = "packages.txt"
SANITIZERS = "sanitizer_packages.txt"  # for what clang reads, too
# The lists beside packages.txt, and the files whose programs each of them
# provides.
OTHER_LISTS = {
    SANITIZERS: ("tests/tools/packages/",),
    "browser_packages.txt": ("tests/tools/report/report_page_test.sh",),
    "cuda_packages.txt": ("tools/lib/fetch_cudnn_frontend", "tools/setup"),
}

# Optional programs and modules, and what happens without each.
MAY_BE_ABSENT = {
    "compute-sanitizer": "gpu_check says that it is not there",
    "debootstrap": "tools/bare_root ends and says how to install it",
    "gdb": "tools/chaos prints no stacks of a stuck program without it",
    "nvidia-smi": "gpu_check says that it is not there",
    "srun": "examples/cluster/slurm.sh is for clusters that have it",
    "torch": "benchmarks are not compared with PyTorch",
}

# Programs that Bazel's C++ toolchain and its tests start by themselves.
BAZEL_TOOLS = ("ar", "as", "bash", "cpp", "g++", "gcc", "gcov", "ld", "nm",
               "objcopy", "objdump", "strip")
_PATH = ("/usr/bin", "/usr/sbin")
_SKIPPED = ("__pycache__", "checkpoints", "dist", "peer", "runs")


class Tree:
    """The files under a folder, without build outputs and ignored folders."""

    def __init__(self, root):
        self.root = root
        paths = sorted(self._paths())
        self.folders = {path.split("/")[0] for path in paths if "/" in path}
        self.files = tree_needs.read_tree(root, paths)

    def _paths(self):
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders
                          if name not in _SKIPPED and
                          not name.startswith("bazel-") and
                          (not name.startswith(".") or name == ".ci") and
                          not os.path.islink(os.path.join(folder, name))]
            for name in names:
                yield os.path.relpath(os.path.join(folder, name), self.root)

    @functools.cached_property
    def needs(self):
        return tree_needs.read_needs(self.files)

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as text:
            return text.read()


class Checker:
    """Collects findings about one tree with the lists in `lists_folder`, and
    notes on what it could not check."""

    def __init__(self, tree, lists_folder, packages):
        self.findings, self.notes = [], []
        self._tree, self._packages = tree, packages
        self._lists = {
            name: debian.read_list(os.path.join(lists_folder, name))
            for name in (PACKAGES, *OTHER_LISTS)}

    def check(self):
        missing = self._not_installed(PACKAGES)
        if missing:
            self.notes.append("nothing is checked without %s; run tools/setup" %
                              " ".join(missing))
            return []
        self.check_gxx()
        self.check_clang()
        self.check_runs()
        return self.findings

    def check_gxx(self):
        """Headers and libraries of every configuration but those of clang."""
        self._check_compiler("g++", [PACKAGES])

    def check_clang(self):
        """The same as clang sees it, for --config=asan_ubsan."""
        missing = self._not_installed(SANITIZERS)
        if missing:
            self.notes.append("what clang reads is not checked without %s; run "
                              "tools/setup --sanitizers" % " ".join(missing))
        else:
            self._check_compiler("clang++", [PACKAGES, SANITIZERS])

    def _not_installed(self, name):
        return [package for package in self._lists[name]
                if not self._packages.is_installed(package)]

    def _report(self, used, lists, without_owner):
        """Adds a finding for each package of `used`, {file: (place, verb)},
        that is not there once the lists are installed, and for each file of no
        package if `without_owner`."""
        allowed = self._packages.closure(
            [package for name in lists for package in self._lists[name]])
        owners = debian.owners(used)
        reported = set()
        for path, (place, verb) in sorted(used.items(), key=lambda item: item[1]):
            if owners[path] & allowed or not (owners[path] or without_owner):
                continue
            owner = " or ".join(sorted(owners[path])) or None
            if owner and owner in reported:
                continue
            reported.add(owner)
            self.findings.append("%s: %s %s, %s; add %s to tools/lib/%s" % (
                place, verb, path,
                "of %s, which no list brings" % owner if owner
                else "which belongs to no Debian package",
                owner or "the package that has it", lists[-1]))

    # What compilers read.

    def _check_compiler(self, name, lists):
        compiler = compiled_needs.Compiler(name, self._include_folders())
        includes = compiled_needs.system_includes(self._tree.files,
                                                  self._tree.folders)
        missing, read = compiler.headers(includes)
        used = {path: (_place_of(path, includes), "%s reads" % name)
                for path in read}
        for header in missing:
            self.findings.append(
                "%s: %s finds no <%s>, which no list brings; add its package to "
                "tools/lib/%s" % (includes.get(header, "a header"), name,
                                  header, lists[-1]))
        self._check_libraries(compiler, used, lists)
        self._report(used, lists, without_owner=True)

    def _check_libraries(self, compiler, used, lists):
        libraries = compiled_needs.linked_libraries(self._tree.files)
        configured = compiled_needs.linked_by_configurations(
            self._tree.read(".bazelrc"))
        commands = [("a BUILD file", sorted(libraries))] + [
            (".bazelrc", options) for options in configured[compiler.name]]
        for place, options in commands:
            missing, found = compiler.libraries(options)
            for path in found:
                for each in (path, os.path.realpath(path)):
                    used.setdefault(each, (place, "%s links" % compiler.name))
            for each in missing:
                self.findings.append(
                    "%s: %s finds no %s, which no list brings; add its package "
                    "to tools/lib/%s" % (libraries.get(each, place),
                                         compiler.name, each, lists[-1]))

    def _include_folders(self):
        """Folders of the system that a repository rule adds."""
        return re.findall(r'^_INCLUDE = "(.*)"$',
                          self._tree.read("third_party/mpi/repo.bzl"),
                          re.MULTILINE)

    # What runs.

    def check_runs(self):
        """Programs and modules of scripts and tests, and paths in sources."""
        used = {}
        unused = set(MAY_BE_ABSENT) - {need.name.split(".")[0]
                                       for need in self._tree.needs}
        for name in sorted(unused):
            self.findings.append("MAY_BE_ABSENT of check_packages.py: nothing "
                                 "uses %s; remove it" % name)
        of_bazel = [tree_needs.Need("program", name, "Bazel")
                    for name in BAZEL_TOOLS]
        for need in self._tree.needs + of_bazel:
            path = locate(need)
            if path and need.name.split(".")[0] not in MAY_BE_ABSENT:
                lists = (PACKAGES, *(name for name, files in OTHER_LISTS.items()
                                     if need.where.startswith(files)))
                used.setdefault(lists, {}).setdefault(
                    path, (need.where, "uses"))
        for lists, files in used.items():
            # What a machine makes of its own, as /etc/hosts, is fine.
            self._report(files, lists, without_owner=False)


def locate(need):
    """The file of the system that meets a need, or None."""
    if need.kind == "module":
        return _locate_module(need.name.split(".")[0])
    if need.kind == "path":
        return need.name if os.path.exists(need.name) else None
    for folder in _PATH:
        path = os.path.join(folder, need.name)
        if os.path.exists(path):
            return path
    return None


def _locate_module(name):
    if name in sys.builtin_module_names:
        return None
    spec = importlib.util.find_spec(name)
    path = spec and spec.origin
    # Modules of the tree, and of a Python that a user installed, are not
    # Debian's.
    return path if path and path.startswith("/usr/lib/") else None


def _place_of(path, includes):
    """Where the tree includes a header, if it does so itself."""
    for header, place in includes.items():
        if path.endswith("/" + header):
            return place
    return "a header of the system"


def main():
    root = sys.argv[1]
    packages = debian.Debian(debian.run_dpkg_query())
    checker = Checker(Tree(root), os.path.join(root, "tools/lib"), packages)
    for finding in checker.check():
        print(finding)
    for note in checker.notes:
        print("note: " + note)
    sys.exit(bool(checker.findings))


if __name__ == "__main__":
    main()
