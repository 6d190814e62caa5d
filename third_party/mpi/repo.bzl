"""Finds Open MPI and makes it the repository @local_mpi.

It looks where Debian's libopenmpi-dev puts mpi.h. Where that is not there,
@local_mpi has no headers, and if_mpi (defs.bzl) chooses what needs none.
"""

_INCLUDE = "/usr/lib/x86_64-linux-gnu/openmpi/include"

_BUILD = """
package(default_visibility = ["//visibility:public"])

# What comm/mpi is compiled with: it loads the library itself, when it is asked
# for links.
cc_library(
    name = "headers",
    hdrs = glob(["include/**"]),
    includes = ["include"],
)

# For programs that are all MPI: the peer of a benchmark.
cc_library(
    name = "mpi",
    linkopts = ["-lmpi"],
    deps = [":headers"],
)
"""

def _mpi_repository_impl(rctx):
    found = rctx.path(_INCLUDE + "/mpi.h").exists
    if found:
        rctx.symlink(_INCLUDE, "include")
    rctx.file("defs.bzl", "HAS_MPI = %s\n" % found)
    rctx.file("BUILD.bazel", _BUILD)

mpi_repository = repository_rule(
    implementation = _mpi_repository_impl,
    local = True,
)
