"""@local_cuda: the CUDA toolkit at $CUDA_HOME (default /usr/local/cuda), or an empty stand-in."""

def _impl(rctx):
    home = rctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    nvcc = rctx.path(home + "/bin/nvcc")
    found = nvcc.exists
    version = ""
    if found:
        res = rctx.execute([str(nvcc), "--version"])
        if res.return_code != 0:
            fail("%s --version: %s" % (nvcc, res.stderr))
        version = res.stdout.strip().split("\n")[-1]
        rctx.symlink(home + "/include", "include")
        rctx.symlink(home + "/lib64", "lib64")
        rctx.symlink(home + "/bin", "bin")

    rctx.file("defs.bzl", "CUDA_FOUND = %s\nCUDA_HOME = %r\nCUDA_VERSION = %r\n" % (found, home, version))
    # Changes whenever the toolkit does; every nvcc action takes it as an input.
    rctx.file("version.txt", "%s %s\n" % (home, version))
    rctx.template("BUILD.bazel", Label("//third_party/cuda:local_cuda.BUILD.tpl" if found else "//third_party/cuda:no_cuda.BUILD.tpl"), {})

cuda_repository = repository_rule(
    implementation = _impl,
    environ = ["CUDA_HOME"],
    local = True,
)
