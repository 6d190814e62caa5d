"""Packs what Bazel has built into a relocatable archive, or a Debian package; see
tools/package.

    make_package.py --tree=. --built=bazel-bin --out=dist [--deb]

Prints the path of what it has made. Equal input gives equal bytes: entries are
sorted, belong to root and have one fixed time.
"""

import argparse
import gzip
import io
import os
import tarfile

from elf_needs import bundled_libraries, output_of, path_of, soname_of
from package import debian
from package.interface import ARCHIVES, Interface, Layout

# Flags for parts of the C library, which needs none since glibc 2.34.
OF_LIBC = frozenset(["-ldl", "-lpthread"])
# Debian packages whose code is compiled into trainer and the archives.
COMPILED_IN = ("libabsl-dev", "libboost1.74-dev", "libprotobuf-dev",
               "librandom123-dev", "libtomlplusplus-dev", "nlohmann-json3-dev")
ABSEIL = "/usr/include/absl"
EXAMPLES = ("examples/01_train_by_hand", "examples/glyphs", "examples/mnist",
            "examples/libtorch_ddp", "examples/outside")
TIME = 1577836800  # 2020-01-01


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
    """The entries of a package: {path: (bytes, mode)}."""

    def __init__(self, tree, built):
        self._tree = tree
        self._built = built
        self.version = self.of_tree("VERSION").decode().strip()
        self.entries = {}

    def add(self, path, content, mode=0o644):
        self.entries[path] = (content, mode)

    def of_tree(self, path):
        return read(os.path.join(self._tree, path))

    def built(self, path):
        """Returns the path of an output of Bazel."""
        return os.path.join(self._built, path)

    def add_library(self, layout, repair):
        """Adds archives, headers, and what pkg-config and CMake say of them.
        Returns the names of the shared libraries that programs link besides."""
        lib = layout.root + layout.lib + "/"
        include = layout.root + layout.include + "/"
        libraries = {}
        for name, archive in ARCHIVES.items():
            self.add(lib + archive, read(self.built("tools/lib/" + archive)))
            listed = self._listed(archive, "libraries")
            libraries[name] = [soname_of(path_of("lib%s.so" % flag[len("-l"):]))
                               for flag in listed if flag not in OF_LIBC]
            for path in self._listed(archive, "headers"):
                self.add(include + path, self.of_tree(path))
        self._add_abseil(include)
        interface = Interface(self.version, layout, repair, libraries)
        for path, content in interface.files(self.of_tree).items():
            self.add(path, content)
        return {file for files in libraries.values() for file in files}

    def _listed(self, archive, kind):
        path = self.built("tools/lib/" + archive.replace(".a", "." + kind))
        return read(path).decode().split()

    # Adds all of Abseil's headers: its types are in the public headers, and
    # libtroupe_core.a has the code of all of them.
    def _add_abseil(self, include):
        for folder, _, names in os.walk(ABSEIL):
            for name in names:
                path = os.path.join(folder, name)
                inside = os.path.relpath(path, os.path.dirname(ABSEIL))
                self.add(include + inside, read(path))

    def add_examples(self, to):
        for folder in EXAMPLES:
            for name in os.listdir(os.path.join(self._tree, folder)):
                if (name.endswith((".cc", ".h", ".py", ".toml")) or
                        name in ("CMakeLists.txt", "Makefile")):
                    path = folder + "/" + name
                    self.add(to + path, self.of_tree(path))

    def add_licences(self, to, packages):
        for package in packages:
            self.add(to + package, licence_of(package))


def fill_archive(package):
    """Adds all that the relocatable archive has."""
    trainer = package.built("tools/relocatable_trainer")
    package.add("bin/trainer", read(trainer), 0o755)
    owners = set(COMPILED_IN)
    for name, path in bundled_libraries(trainer).items():
        package.add("lib/" + name, read(path))
        owners.add(owner_of(path))
    package.add_licences("licenses/", owners)
    package.add_library(
        Layout(root="", lib="lib", include="include/troupe",
               prefix="${pcfiledir}/../..",
               rpath="-Wl,-rpath,${libdir},--disable-new-dtags "),
        repair="unpack the whole archive of tools/package again")
    package.add_examples("")
    package.add("README.md", package.of_tree("tools/lib/archive_README.md"))
    package.add("LICENSE", package.of_tree("LICENSE"))
    package.add("CHANGELOG.md", package.of_tree("CHANGELOG.md"))


def write_archive(package, out):
    """Writes the archive into the folder `out` and returns its path."""
    name = "troupe-%s-linux-x86_64" % package.version
    path = os.path.join(out, name + ".tar.gz")
    with open(path, "wb") as raw, gzip.GzipFile(
            filename="", mode="wb", fileobj=raw, mtime=TIME,
            compresslevel=6) as packed, \
            tarfile.open(fileobj=packed, mode="w",
                         format=tarfile.USTAR_FORMAT) as tar:
        for entry, (content, mode) in sorted(package.entries.items()):
            info = tarfile.TarInfo(name + "/" + entry)
            info.size, info.mode, info.mtime = len(content), mode, TIME
            tar.addfile(info, io.BytesIO(content))
    return path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tree", required=True)
    parser.add_argument("--built", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--deb", action="store_true")
    arguments = parser.parse_args()
    package = Package(arguments.tree, arguments.built)
    os.makedirs(arguments.out, exist_ok=True)
    if arguments.deb:
        debian.fill(package, COMPILED_IN, TIME)
        print(debian.write(package, arguments.out, TIME))
    else:
        fill_archive(package)
        print(write_archive(package, arguments.out))


main()
