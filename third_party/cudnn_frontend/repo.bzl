"""Finds the headers of cuDNN's frontend and makes them @cudnn_frontend.

It looks in $CUDNN_FRONTEND_HOME/include, then where `tools/setup --cuda` puts
them, then in $CUDA_HOME/include, or that of /usr/local/cuda. Where they are not
there, or older than the release that Troupe is built with, @cudnn_frontend is
empty, and if_cudnn_frontend (defs.bzl) chooses what needs none.
"""

# That of requirements.txt.
_VERSION = (1, 32, 0)

_BUILD = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "cudnn_frontend",
    hdrs = glob([
        "include/**/*.h",
        "include/**/*.hpp",
    ]),
    includes = ["include"],
)
"""

def _number(text, name):
    """The value of `#define NAME value`; -1 where there is none."""
    for line in text.split("\n"):
        words = [word for word in line.strip().split(" ") if word]
        if len(words) == 3 and words[:2] == ["#define", name]:
            return int(words[2])
    return -1

def _version_in(rctx, folder):
    """The version of the headers there, or None."""
    path = rctx.path(folder + "/cudnn_frontend_version.h")
    if not path.exists:
        return None
    text = rctx.read(path)
    return tuple([
        _number(text, "CUDNN_FRONTEND_%s_VERSION" % part)
        for part in ["MAJOR", "MINOR", "PATCH"]
    ])

def _cudnn_frontend_repository_impl(rctx):
    env = rctx.os.environ
    folders = [
        env.get("HOME", "") + "/.cache/troupe/cudnn-frontend-%d.%d.%d/include" % _VERSION,
        env.get("CUDA_HOME", "/usr/local/cuda") + "/include",
    ]
    if env.get("CUDNN_FRONTEND_HOME"):
        folders.insert(0, env["CUDNN_FRONTEND_HOME"] + "/include")
    found = False
    for folder in folders:
        version = _version_in(rctx, folder)
        if version and version >= _VERSION:
            for entry in rctx.path(folder).readdir():
                if entry.basename.startswith("cudnn_frontend") or entry.basename == "cudnn_backend_base.h":
                    rctx.symlink(entry, "include/" + entry.basename)
            found = True
            break
    rctx.file("defs.bzl", "HAS_CUDNN_FRONTEND = %s\n" % found)
    rctx.file("BUILD.bazel", _BUILD)

cudnn_frontend_repository = repository_rule(
    implementation = _cudnn_frontend_repository_impl,
    environ = ["CUDA_HOME", "CUDNN_FRONTEND_HOME", "HOME"],
    local = True,
)
