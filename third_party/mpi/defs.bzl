"""What is built where Open MPI is, and what elsewhere: if_mpi.

    load("//third_party/mpi:defs.bzl", "if_mpi")

    cc_library(
        name = "mpi_process",
        srcs = if_mpi(["mpi_process.cc"], ["no_mpi/mpi_process.cc"]),
        deps = if_mpi(["@local_mpi//:headers"]),
    )
"""

load("@local_mpi//:defs.bzl", "HAS_MPI")

def if_mpi(then, otherwise = []):
    """Returns `then` where mpi.h was found, `otherwise` elsewhere."""
    return then if HAS_MPI else otherwise
