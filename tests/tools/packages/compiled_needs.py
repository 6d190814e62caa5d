"""Headers and libraries that a tree is compiled with, as the compilers find them.

    compiler = Compiler("clang++", include_folders)
    missing, found = compiler.headers(system_includes(root, paths))
    missing, found = compiler.libraries(["-lz", "-fsanitize=address"])

`found` has absolute paths: of the headers, those that they include too. The
compilers only preprocess one small file, and print what they would link.
"""

import os
import re
import subprocess

# Headers of the CUDA toolkit, cuDNN with its frontend, and NCCL: Debian 12 has
# none that is new enough, and GPU code is built only where a toolkit is.
OF_NVIDIA = ("cublas", "cuda", "cudnn", "nccl", "vector_functions.h",
             "vector_types.h")
# Headers of libtorch, which PyTorch's wheel brings: what reads them is built only
# where it is at hand.
OF_TORCH = ("torch/",)

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)
_LIBRARY = re.compile(r'"(-l:?[\w.+-]*\w)"')
_FILE_OF_LINKER = re.compile(r"/.*\.(a|o|so)(\.[\d.]+)?$")


def system_includes(files, tree_folders):
    """{header: a place that includes it}, without the tree's own, NVIDIA's
    and libtorch's.

    Headers in quotes that begin with one of the folders of the tree are its
    own or made in its build. CUDA sources are left out.
    """
    found = {}
    for file in files:
        if not file.path.endswith((".h", ".cc")):
            continue
        for include in _INCLUDE.finditer(file.text):
            quote, header = include.groups()
            if header.startswith(OF_NVIDIA + OF_TORCH):
                continue
            if quote == '"' and (header.split("/")[0] in tree_folders or
                                 "/" not in header):
                continue
            found.setdefault(header, file.where(file.line_of(include.start(2))))
    return found


def linked_libraries(files):
    """{"-lz": a place that links it}: strings in BUILD and .bzl files."""
    found = {}
    for file in files:
        if file.is_build and not file.path.startswith("third_party/cuda/"):
            for option in _LIBRARY.finditer(file.text):
                found.setdefault(option.group(1), file.where(
                    file.line_of(option.start(1))))
    return found


def linked_by_configurations(bazelrc):
    """What .bazelrc tells the compilers that link.

    Returns {compiler: options}, such as {"clang++": ["-fsanitize=address"]}.
    """
    options, of_clang = {}, set()
    for line in bazelrc.splitlines():
        words = line.split()
        if not words or not words[0].startswith("build"):
            continue
        name = words[0].partition(":")[2]
        if "--repo_env=CC=clang" in words:
            of_clang.add(name)
        options.setdefault(name, []).extend(
            word[len("--linkopt="):] for word in words
            if word.startswith("--linkopt="))
    found = {"g++": [], "clang++": []}
    for name, flags in options.items():
        # Sanitizers exclude one another, so each configuration is one command.
        if flags:
            found["clang++" if name in of_clang else "g++"].append(flags)
    return found


class Compiler:

    def __init__(self, name, include_folders=()):
        self.name = name
        self._folders = ["-I" + folder for folder in include_folders]

    def headers(self, headers):
        """Returns (headers that it does not find, all files that it reads)."""
        source = "".join("#include <%s>\n" % header for header in headers)
        # -MG goes on after a header that it does not find, and names it.
        done = self._run("-std=c++17", "-fopenmp", *self._folders, "-M", "-MG",
                         "-x", "c++", "-", given=source)
        names = done.stdout.replace("\\\n", " ").split(": ", 1)[1].split()
        names = [name for name in names if name != "-"]
        return ([name for name in names if not os.path.isabs(name)],
                [name for name in names if os.path.isabs(name)])

    def libraries(self, options):
        """Returns (files and -l options that are not there, files that are).

        The linker is one of the files.
        """
        # The object file is never read; clang wants that it exists.
        done = self._run("-###", *options, "-x", "none", "/dev/null")
        linker = [line for line in done.stderr.splitlines()
                  if re.search(r'/(collect2|ld(\.lld)?)"? ', line)][-1]
        folders = self._library_folders()
        program, *words = linker.replace('"', " ").split()
        missing, found = [], [program]
        for word in words:
            if word.startswith("-l"):
                path = self._library(word[2:], folders)
            elif _FILE_OF_LINKER.match(word):
                path = word if os.path.exists(word) else None
            else:
                continue
            if path:
                found.append(path)
            else:
                missing.append(word)
        return missing, found

    def _library(self, name, folders):
        files = ([name[1:]] if name.startswith(":") else
                 ["lib%s.so" % name, "lib%s.a" % name])
        for folder in folders:
            for file in files:
                if os.path.exists(os.path.join(folder, file)):
                    return os.path.join(folder, file)
        return None

    def _library_folders(self):
        printed = self._run("-print-search-dirs").stdout
        return re.search(r"^libraries: =(.*)$", printed, re.MULTILINE
                         ).group(1).split(":")

    def _run(self, *words, given=None):
        # Folders that variables such as CPATH add belong to this machine alone.
        done = subprocess.run(
            [self.name, *words], input=given, capture_output=True, text=True,
            env={"PATH": "/usr/bin:/bin"}, check=False)
        if done.returncode != 0:
            raise RuntimeError("%s %s:\n%s" % (
                self.name, " ".join(words), done.stderr))
        return done
