"""Collects what Bazel has built for GPUs in one folder; see tools/gpu_bundle.

    make_gpu_bundle.py --tree=. --built=bazel-bin --out=dist \\
        --programs=//tools:trainer,//tools/bench/gpu_step \\
        --tests=//tests/nn/kernels/cuda:ops_gpu_test [--archive]

Programs, libraries and data are packed in the folder, and with_cuda.sh unpacks
them there at the first use: oneDNN's library alone would take two thirds of the
folder's size limit.

Prints the folder's path and size, and the archive's path if one is made.
"""

import argparse
import gzip
import lzma
import os
import shutil
import subprocess
import tarfile
import tempfile

from elf_needs import (bundled_libraries, needed_by, newest_symbol_version,
                       output_of)

BYTES_MAX = 60 << 20
# Versions in Ubuntu 22.04, the oldest supported system.
SYSTEM = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30)}
# Libraries that are not bundled; with_cuda finds them on the machine.
OF_NVIDIA = ("libcublas", "libcudnn", "libcudart", "libnccl", "libnvrtc",
             "libnvJitLink", "libcuda.")
# Paths in the bundle, and in the tree.
SCRIPTS = {
    "gpu_check": "tools/gpu_check",
    "with_cuda": "tools/lib/with_cuda.sh",
    "peer_python": "tools/lib/peer_python.sh",
}
MODULES = "tools/lib/gpu_check"
WORKSPACE = "troupe/"


def file_of(label):
    """Returns the path of a label: a/b/c for //a/b:c, and a/b/b for //a/b."""
    package, _, name = label[2:].partition(":")
    return os.path.join(package, name or os.path.basename(package))


def refuse(message):
    raise SystemExit("make_gpu_bundle.py: " + message)


def path_in(folder, *parts):
    path = os.path.join(folder, *parts)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


def files_in(folder):
    for parent, _, names in os.walk(folder):
        for name in names:
            yield os.path.join(parent, name)


class Programs:
    """Puts programs with all that they need into a folder: bin/, tests/, lib/
    and data/."""

    def __init__(self, built, folder):
        self._built, self.folder = built, folder
        self._nvidia = set()
        self._libraries = {}

    def add(self, label, into):
        """Adds a program without symbols, its libraries, and its data."""
        built = os.path.join(self._built, file_of(label))
        path = path_in(self.folder, into, os.path.basename(built))
        subprocess.run(["strip", "-s", "-o", path, built], check=True)
        os.chmod(path, 0o755)
        if "$ORIGIN/../lib" not in output_of("readelf", "-d", path):
            refuse("%s does not look for libraries in ../lib; link it with "
                   "-rpath,$ORIGIN/../lib" % built)
        self._nvidia.update(name for name in needed_by(path)
                            if name.startswith(OF_NVIDIA))
        self._libraries.update(bundled_libraries(path, but=OF_NVIDIA))
        self._add_data(built)

    def _add_data(self, built):
        """Adds the runfiles of the workspace, except programs."""
        manifest = built + ".runfiles/MANIFEST"
        if not os.path.exists(manifest):
            return
        with open(manifest, encoding="utf-8") as lines:
            for line in lines:
                entry, _, source = line.rstrip("\n").partition(" ")
                if (entry.startswith(WORKSPACE) and source and
                        not is_elf(source)):
                    shutil.copyfile(source, path_in(
                        self.folder, "data", entry[len(WORKSPACE):]))

    def add_libraries(self):
        for name, source in self._libraries.items():
            shutil.copyfile(source, path_in(self.folder, "lib", name))
        with open(path_in(self.folder, "lib", "nvidia.txt"), "w",
                  encoding="utf-8") as names:
            names.writelines(name + "\n" for name in sorted(self._nvidia))

    def check_system(self):
        """Checks that no program needs a newer system than the README says."""
        for path in files_in(self.folder):
            if not is_elf(path):
                continue
            for family, have in SYSTEM.items():
                wants = newest_symbol_version(path, family)
                if wants > have:
                    refuse("%s wants %s %s; this machine is too new to build "
                           "for %s" % (path, family, dotted(wants),
                                       dotted(have)))


def add_scripts(tree, folder, version):
    for name, source in SCRIPTS.items():
        shutil.copy(os.path.join(tree, source), path_in(folder, name))
    modules = os.path.join(tree, MODULES)
    for name in sorted(os.listdir(modules)):
        if name.endswith(".py"):
            shutil.copyfile(os.path.join(modules, name),
                            path_in(folder, "lib", "gpu_check", name))
    shutil.copyfile(os.path.join(tree, "tools/lib/gpu_bundle_README.md"),
                    path_in(folder, "README.md"))
    with open(path_in(folder, "VERSION"), "w", encoding="utf-8") as text:
        text.write(version + "\n")


def dotted(version):
    return ".".join(str(part) for part in version)


def is_elf(path):
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as content:
        return content.read(4) == b"\x7fELF"


# Programs share much code: a window that spans several of them takes less than
# half of gzip's bytes.
XZ = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 64 << 20}]


def pack(folder, into, inside):
    """Writes the folder as an archive, in which its name is `inside`."""
    with tarfile.open(fileobj=into, mode="w") as archive:
        archive.add(folder, inside)


def parse_arguments():
    parser = argparse.ArgumentParser()
    for name in ("tree", "built", "out", "programs", "tests"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--archive", action="store_true")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    with open(os.path.join(arguments.tree, "VERSION"),
              encoding="utf-8") as text:
        version = text.read().strip()
    folder = os.path.join(arguments.out, "troupe-gpu-" + version)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with tempfile.TemporaryDirectory(dir=arguments.out) as stage:
        programs = Programs(arguments.built, stage)
        for labels, into in ((arguments.programs, "bin"),
                             (arguments.tests, "tests")):
            for label in filter(None, labels.split(",")):
                programs.add(label, into)
        programs.add_libraries()
        programs.check_system()
        with lzma.open(os.path.join(folder, "programs.tar.xz"), "w",
                       filters=XZ) as packed:
            pack(stage, packed, ".")
    add_scripts(arguments.tree, folder, version)
    size = sum(os.path.getsize(path) for path in files_in(folder))
    if size > BYTES_MAX:
        refuse("%s has %.1f MiB, more than the %d that may travel" % (
            folder, size / 2 ** 20, BYTES_MAX >> 20))
    print("%s: %.1f MiB" % (folder, size / 2 ** 20))
    if arguments.archive:
        archive = folder + ".tar.gz"
        # The largest file is compressed already.
        with gzip.open(archive, "w", compresslevel=1) as packed:
            pack(folder, packed, os.path.basename(folder))
        print("%s: %.1f MiB" % (archive, os.path.getsize(archive) / 2 ** 20))


if __name__ == "__main__":
    main()
