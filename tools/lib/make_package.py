"""Packs what Bazel has built into one relocatable archive; see tools/package.

    make_package.py --tree=. --built=bazel-bin --out=dist

Prints the archive's path. Equal input gives equal bytes: entries are sorted and
have no owner and one fixed time.
"""

import argparse
import gzip
import io
import os
import tarfile

from elf_needs import bundled_libraries, needed_by, output_of

# Shared libraries that g++ links by default.
OF_THE_COMPILER = frozenset([
    "ld-linux-x86-64.so.2", "libc.so.6", "libgcc_s.so.1", "libm.so.6",
    "libstdc++.so.6",
])
# Debian packages whose code is compiled into trainer and libtroupe.a.
COMPILED_IN = ("libabsl-dev", "libboost1.74-dev", "libprotobuf-dev",
               "librandom123-dev", "libtomlplusplus-dev", "nlohmann-json3-dev")
ABSEIL = "/usr/include/absl"
EXAMPLES = ("examples/glyphs", "examples/mnist", "examples/outside")
TIME = 315532800  # 1980-01-01

PKG_CONFIG = """\
prefix=${pcfiledir}/../..
includedir=${prefix}/include/troupe
libdir=${prefix}/lib

Name: Troupe
Description: Trains neural networks on several ranks at once
Version: %s
Cflags: -std=c++17 -I${includedir}
Libs: -L${libdir} -Wl,-rpath,${libdir},--disable-new-dtags -ltroupe %s -pthread
"""


def read(path):
    with open(path, "rb") as content:
        return content.read()


def licence_of(package):
    path = "/usr/share/doc/%s/copyright" % package
    if not os.path.exists(path):
        raise SystemExit("make_package.py: no %s; reinstall the package %s"
                         % (path, package))
    return read(path)


def owner_of(path):
    """Returns the Debian package that a file belongs to."""
    return output_of("dpkg", "-S", path).split(":")[0]


class Package:
    """The entries of the archive: {path: (bytes, mode)}."""

    def __init__(self, tree, built):
        self._tree = tree
        self._built = built
        self.version = read(os.path.join(tree, "VERSION")).decode().strip()
        self.entries = {}

    def add(self, path, content, mode=0o644):
        self.entries[path] = (content, mode)

    def add_all(self):
        self._add_programs()
        self._add_headers()
        self._add_examples()
        self.add("README.md", self._of_tree("tools/lib/archive_README.md"))
        self.add("LICENSE", self._of_tree("LICENSE"))
        self.add("CHANGELOG.md", self._of_tree("CHANGELOG.md"))

    def _of_tree(self, path):
        return read(os.path.join(self._tree, path))

    def _add_programs(self):
        trainer = os.path.join(self._built, "tools/relocatable_trainer")
        self.add("bin/trainer", read(trainer), 0o755)
        archive = os.path.join(self._built, "tools/lib/libtroupe.a")
        self.add("lib/libtroupe.a", read(archive))
        packages = set(COMPILED_IN)
        for name, path in bundled_libraries(trainer).items():
            self.add("lib/" + name, read(path))
            packages.add(owner_of(path))
        for package in packages:
            self.add("licenses/" + package, licence_of(package))
        flags = ["-l:" + name for name in needed_by(trainer)
                 if name not in OF_THE_COMPILER]
        self.add("lib/pkgconfig/troupe.pc",
                 (PKG_CONFIG % (self.version, " ".join(flags))).encode())

    # Adds all of Abseil's headers: its types are in the public headers, and
    # libtroupe.a has the code of all of them.
    def _add_headers(self):
        listed = os.path.join(self._built, "tools/lib/libtroupe.headers")
        for path in read(listed).decode().split():
            self.add("include/troupe/" + path, self._of_tree(path))
        for folder, _, names in os.walk(ABSEIL):
            for name in names:
                path = os.path.join(folder, name)
                inside = os.path.relpath(path, os.path.dirname(ABSEIL))
                self.add("include/troupe/" + inside, read(path))

    def _add_examples(self):
        for folder in EXAMPLES:
            for name in os.listdir(os.path.join(self._tree, folder)):
                if name.endswith((".cc", ".h", ".toml")) or name == "Makefile":
                    path = folder + "/" + name
                    self.add(path, self._of_tree(path))

    def write(self, out):
        """Writes the archive into the folder `out` and returns its path."""
        name = "troupe-%s-linux-x86_64" % self.version
        os.makedirs(out, exist_ok=True)
        path = os.path.join(out, name + ".tar.gz")
        with open(path, "wb") as raw, gzip.GzipFile(
                filename="", mode="wb", fileobj=raw, mtime=TIME,
                compresslevel=6) as packed, \
                tarfile.open(fileobj=packed, mode="w",
                             format=tarfile.USTAR_FORMAT) as tar:
            for entry, (content, mode) in sorted(self.entries.items()):
                info = tarfile.TarInfo(name + "/" + entry)
                info.size, info.mode, info.mtime = len(content), mode, TIME
                tar.addfile(info, io.BytesIO(content))
        return path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tree", required=True)
    parser.add_argument("--built", required=True)
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    package = Package(arguments.tree, arguments.built)
    package.add_all()
    print(package.write(arguments.out))


main()
