"""The Debian package of tools/package --deb, in Debian's folders.

    debian.fill(package, COMPILED_IN, time)    # package: make_package.py's, empty
    path = debian.write(package, "dist", time)

The shared libraries are those of Debian 12, which apt installs: its security
updates reach the programs, and nothing is in the package that Debian has.
dpkg-shlibdeps finds the packages and their oldest versions.
"""

import gzip
import hashlib
import os
import subprocess
import tempfile
from email.utils import formatdate

from elf_needs import needed_by, output_of
from package.interface import Layout

_LAYOUT = Layout(root="usr/", lib="lib/x86_64-linux-gnu",
                 include="include/troupe", prefix="/usr", rpath="")
_DOC = "usr/share/doc/troupe/"
_MAINTAINER = "The maintainers of Troupe <maintainers@troupe.invalid>"
_REPAIR = "run apt-get install --reinstall troupe"

_CONTROL = """\
Package: troupe
Version: %(version)s
Architecture: amd64
Maintainer: %(maintainer)s
Installed-Size: %(kibibytes)d
Depends: %(depends)s
Suggests: cmake, g++, libopenmpi3, openmpi-bin, pkgconf
Section: science
Priority: optional
Description: distributed trainer for neural networks, and its C++ library
 Troupe trains neural networks on several ranks at once: data parallel, in
 pipelines and with sharded states, on one host or many. Every rank is a small
 troupe of actors, which a deterministic simulator runs, too.
 .
 The package has the program "trainer", the C++17 library with its headers, for
 CMake (find_package) and pkg-config, and examples.
"""

_COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Troupe
Comment: The licences of the libraries that are compiled into trainer, \
libtroupe.a
 and libtroupe_core.a are in /usr/share/doc/troupe/licenses, one file for each
 Debian package; Debian has their sources.

Files: *
Copyright: 2026 The authors of Troupe
License: Apache-2.0
 On Debian systems the text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
"""

_CHANGELOG = """\
troupe (%s) bookworm; urgency=medium

  * The changes of each version are in CHANGELOG.md.gz, beside this file.

 -- %s  %s
"""

_MAN = """\
.TH TRAINER 1 "" "Troupe %s" "User commands"
.SH NAME
trainer \\- train neural networks on several ranks at once
.SH DESCRIPTION
.nf
%s.fi
.SH SEE ALSO
.I /usr/share/doc/troupe/README.Debian
"""


def fill(package, compiled_in, time):
    """Adds all files of the package. `compiled_in` names the Debian packages
    whose code is in them; `time` is theirs, in seconds since 1970."""
    trainer = package.built("tools/trainer")
    with tempfile.TemporaryDirectory() as folder:
        stripped = os.path.join(folder, "trainer")
        output_of("strip", "--remove-section=.comment",
                  "--remove-section=.note", "-o", stripped, trainer)
        with open(stripped, "rb") as content:
            package.add("usr/bin/trainer", content.read(), 0o755)
    libraries = package.add_library(_LAYOUT, _REPAIR)
    unknown = libraries - set(needed_by(trainer))
    if unknown:
        raise SystemExit(
            "package/debian.py: programs link %s, which trainer does not, so that "
            "Depends would lack its package; extend _dependencies()"
            % ", ".join(sorted(unknown)))
    package.add_examples(_DOC)
    package.add_licences(_DOC + "licenses/", compiled_in)
    package.add(_DOC + "copyright", _COPYRIGHT.encode())
    package.add(_DOC + "README.Debian",
                package.of_tree("tools/lib/package/README.Debian"))
    package.add(_DOC + "CHANGELOG.md.gz",
                _gzip(package.of_tree("CHANGELOG.md")))
    package.add(_DOC + "changelog.gz", _gzip((_CHANGELOG % (
        package.version, _MAINTAINER, formatdate(time))).encode()))
    package.add("usr/share/man/man1/trainer.1.gz",
                _gzip(_man_page(package.version, trainer).encode()))


def write(package, out, time):
    """Writes the .deb into the folder `out` and returns its path."""
    path = os.path.join(out, "troupe_%s_amd64.deb" % package.version)
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)
        entries = {
            "DEBIAN/control": (_control(package).encode(), 0o644),
            "DEBIAN/md5sums": (_md5sums(package.entries), 0o644),
            **package.entries,
        }
        for entry, (content, mode) in entries.items():
            _write_file(root, entry, content, mode)
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "-z0",
                        "--build", root, path],
                       check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "SOURCE_DATE_EPOCH": str(time)})
    return path


def _gzip(content):
    return gzip.compress(content, compresslevel=9, mtime=0)


def _man_page(version, trainer):
    help_text = output_of(trainer, "--help").replace(
        "=examples/", "=/%sexamples/" % _DOC)
    lines = help_text.replace("\\", "\\e").replace("-", "\\-").splitlines()
    # A line that begins with one of these is a command of troff.
    return _MAN % (version, "".join(
        ("\\&" if line.startswith((".", "'")) else "") + line + "\n"
        for line in lines))


def _control(package):
    # dpkg rounds each file up, and counts a folder as one.
    kibibytes = sum((len(content) + 1023) // 1024
                    for content, _ in package.entries.values())
    return _CONTROL % {
        "version": package.version,
        "maintainer": _MAINTAINER,
        "kibibytes": kibibytes + len(_folders(package.entries)),
        "depends": _dependencies(package.built("tools/trainer")),
    }


def _dependencies(program):
    """Returns what a program needs, as a line of dependencies."""
    program = os.path.abspath(program)
    with tempfile.TemporaryDirectory() as folder:
        # The tool asks for a source package, of which it reads the names.
        _write_file(folder, "debian/control",
                    b"Source: troupe\n\nPackage: troupe\nArchitecture: any\n",
                    0o644)
        found = subprocess.run(["dpkg-shlibdeps", "-O", program], cwd=folder,
                               check=True, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True).stdout
    return found.strip().partition("shlibs:Depends=")[2]


def _md5sums(entries):
    return "".join("%s  %s\n" % (hashlib.md5(content).hexdigest(), path)
                   for path, (content, _) in sorted(entries.items())).encode()


def _folders(entries):
    found = set()
    for path in entries:
        while "/" in path:
            path = os.path.dirname(path)
            found.add(path)
    return found


def _write_file(root, path, content, mode):
    """Writes a file, and folders that everybody may read whatever the umask."""
    for folder in sorted(_folders([path])):
        folder = os.path.join(root, folder)
        if not os.path.isdir(folder):
            os.mkdir(folder)
            os.chmod(folder, 0o755)
    path = os.path.join(root, path)
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, mode)
