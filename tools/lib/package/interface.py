"""What pkg-config and CMake say of a package: one description, in two languages.

    interface = Interface("0.1.0", layout, repair, libraries)
    interface.files(read)      # {"lib/pkgconfig/troupe.pc": b"prefix=...", ...}

There are two libraries: "core", below the actors, and "troupe", which has the
rest and links core. `libraries` has the shared libraries that each links besides:
{"core": ["libdnnl.so.2"], "troupe": ["libcaf_core.so.0.17.6"]}. read() returns the
bytes of a file of the tree.
"""

import collections
import os
import re

# Where a package has its files: below `root`, which pkg-config calls `prefix`,
# archives in `lib` and headers in `include`.
Layout = collections.namedtuple(
    "Layout", ["root", "lib", "include", "prefix", "rpath"])

ARCHIVES = {"core": "libtroupe_core.a", "troupe": "libtroupe.a"}
_TEMPLATES = "tools/lib/package/"

_HEAD = """\
prefix=%(prefix)s
includedir=${prefix}/%(include)s
libdir=${prefix}/%(lib)s

"""
_CORE_PC = _HEAD + """\
Name: Troupe core
Description: Tensors, autograd, models, data and collectives; no CAF, no OpenSSL
Version: %(version)s
Cflags: -std=c++17 -I${includedir}
Libs: -L${libdir} %(rpath)s-ltroupe_core %(core_links)s -pthread
"""
_TROUPE_PC = _HEAD + """\
Name: Troupe
Description: Trains neural networks on several ranks at once
Version: %(version)s
Requires: troupe-core = %(version)s
Libs: -L${libdir} -ltroupe %(troupe_links)s
"""


class Interface:

    def __init__(self, version, layout, repair, libraries):
        """`repair` says what to do if a file of the package is missing."""
        self._layout = layout
        config = layout.lib + "/cmake/Troupe"
        self._words = {
            "version": version,
            "minor_version": ".".join(version.split(".")[:2]),
            "lib": layout.lib,
            "include": layout.include,
            "prefix": layout.prefix,
            "rpath": layout.rpath,
            "repair": repair,
            # From the file TroupeConfig.cmake.
            "up": os.path.relpath(".", config + "/file"),
        }
        for name, files in libraries.items():
            self._words[name + "_archive"] = ARCHIVES[name]
            self._words[name + "_libraries"] = " ".join(files)
            self._words[name + "_links"] = " ".join("-l:" + f for f in files)

    def files(self, read):
        """Returns {path: bytes}."""
        lib = self._layout.root + self._layout.lib
        config = read(_TEMPLATES + "TroupeConfig.cmake.in").decode()
        version = read(_TEMPLATES + "TroupeConfigVersion.cmake.in").decode()
        return {path: text.encode() for path, text in {
            lib + "/pkgconfig/troupe.pc": _TROUPE_PC % self._words,
            lib + "/pkgconfig/troupe-core.pc": _CORE_PC % self._words,
            lib + "/cmake/Troupe/TroupeConfig.cmake":
                self._fill_in(config),
            lib + "/cmake/Troupe/TroupeConfigVersion.cmake":
                self._fill_in(version),
        }.items()}

    def _fill_in(self, template):
        return re.sub(r"@(\w+)@", lambda found: self._words[found.group(1)],
                      template)
