"""Finds the CUDA toolkit and makes it the repository @local_cuda.

It looks in $CUDA_HOME, then /usr/local/cuda. Where the toolkit, cuDNN or NCCL
is not there, @local_cuda is a stand-in whose targets exist but cannot be built,
so that `bazel build //...` and `bazel query //...` work on every machine.
"""

# One file of each part that GPU code here uses.
_NEEDED = [
    "bin/nvcc",
    "include/cuda_runtime_api.h",
    "include/cublasLt.h",
    "include/cudnn.h",
    "include/nccl.h",
]

def _cuda_repository_impl(rctx):
    home = rctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    missing = [f for f in _NEEDED if not rctx.path(home + "/" + f).exists]
    version = ""
    why_not = ""
    if missing:
        why_not = "%s has no %s: set CUDA_HOME to a CUDA toolkit with cuDNN and NCCL, or build without --config=cuda" % (home, ", ".join(missing))
    else:
        result = rctx.execute([home + "/bin/nvcc", "--version"])
        if result.return_code != 0:
            fail("%s/bin/nvcc --version: %s" % (home, result.stderr))
        version = result.stdout.strip().split("\n")[-1]
        for folder in ["bin", "include", "lib64"]:
            rctx.symlink(home + "/" + folder, folder)

    rctx.file("defs.bzl", "\n".join([
        "CUDA_HOME = %r" % home,
        "CUDA_MISSING = %r" % why_not,
        "",
    ]))

    # Changes when the toolkit does; every nvcc action reads it.
    rctx.file("version.txt", "%s %s\n" % (home, version))
    template = "no_cuda.BUILD.tpl" if missing else "local_cuda.BUILD.tpl"
    rctx.template(
        "BUILD.bazel",
        Label("//third_party/cuda:" + template),
        {
            "{CUDA_HOME}": home,
            "{CUDA_MISSING}": why_not,
        },
    )

cuda_repository = repository_rule(
    implementation = _cuda_repository_impl,
    environ = ["CUDA_HOME"],
    local = True,
)
