"""Everything that Troupe is built from, for a WORKSPACE.

    local_repository(name = "troupe", path = "...")

    load("@troupe//:deps.bzl", "troupe_deps")

    troupe_deps()

All of it is on the machine already, from Debian 12 packages and, for GPUs, a
wheel of the Python index (tools/setup installs them); nothing is fetched over the
network. Troupe's own WORKSPACE calls the same function. docs/using.md has the rest
that a workspace needs.
"""

load("//third_party/cuda:repo.bzl", "cuda_repository")
load("//third_party/cudnn_frontend:repo.bzl", "cudnn_frontend_repository")
load("//third_party/mpi:repo.bzl", "mpi_repository")

def _folder_impl(rctx):
    folder = rctx.path(rctx.attr.build_file).dirname
    for entry in folder.readdir():
        rctx.symlink(entry, entry.basename)

# A folder of Troupe as a repository, wherever Troupe itself is.
_folder_repository = repository_rule(
    implementation = _folder_impl,
    attrs = {
        "build_file": attr.label(mandatory = True, allow_single_file = True),
    },
)

def troupe_deps():
    """Declares the repositories, less those that the workspace has already."""

    # Bazel 4.2.3 itself wants six: four from Debian, two stand-ins of our own.
    for name, folder in [
        ("bazel_skylib", "tools/skylib"),
        ("platforms", "tools/platforms"),
        ("rules_java", "rules/java"),
        ("rules_proto", "rules/proto"),
    ]:
        if not native.existing_rule(name):
            native.local_repository(
                name = name,
                path = "/usr/share/bazel/" + folder,
            )
    for name in ["remote_coverage_tools", "rules_cc"]:
        if not native.existing_rule(name):
            _folder_repository(
                name = name,
                build_file = Label("//third_party/%s:BUILD" % name),
            )

    # Debian's libraries, one cc_library each.
    if not native.existing_rule("debian"):
        native.new_local_repository(
            name = "debian",
            build_file = str(Label("//third_party/debian:debian.BUILD")),
            path = "/usr",
        )

    # The CUDA toolkit, or an empty stand-in where there is none.
    if not native.existing_rule("local_cuda"):
        cuda_repository(name = "local_cuda")

    # The headers of cuDNN's frontend, or an empty stand-in.
    if not native.existing_rule("cudnn_frontend"):
        cudnn_frontend_repository(name = "cudnn_frontend")

    # Open MPI, or an empty stand-in.
    if not native.existing_rule("local_mpi"):
        mpi_repository(name = "local_mpi")
