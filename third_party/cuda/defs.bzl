"""cuda_library: compiles .cu files with nvcc; hands on a CcInfo, so that cc_* targets can depend on it."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@local_cuda//:defs.bzl", "CUDA_FOUND", "CUDA_HOME")

# nvcc -gencode values: SASS for A100 and H100/H200 (with the 'a' features: wgmma, setmaxnreg),
# and PTX for whatever comes later.
GENCODE = [
    "arch=compute_80,code=sm_80",
    "arch=compute_90a,code=sm_90a",
    "arch=compute_90,code=compute_90",
]

CUDA_ONLY = select({
    "//third_party/cuda:enabled": [],
    "//conditions:default": ["@platforms//:incompatible"],
})

def if_cuda(then, otherwise = []):
    return select({"//third_party/cuda:enabled": then, "//conditions:default": otherwise})

def _own_header(f):
    # nvcc finds the toolkit's headers itself; @local_cuda//:version.txt stands for all of them.
    return "local_cuda" not in f.path

def _cuda_library_impl(ctx):
    if not CUDA_FOUND:
        fail("no CUDA toolkit at %s (set CUDA_HOME, or build without --config=cuda)" % CUDA_HOME)
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    infos = [d[CcInfo] for d in ctx.attr.deps]
    ccx = cc_common.merge_cc_infos(cc_infos = infos).compilation_context

    mode = ctx.var["COMPILATION_MODE"]
    common = ctx.actions.args()
    common.add("-ccbin", cc_common.get_tool_for_action(feature_configuration = features, action_name = "c++-compile"))
    common.add_all(["-std=c++17", "--expt-relaxed-constexpr", "--extended-lambda", "-lineinfo"])
    common.add("-Xcompiler=-fPIC,-Wall,-Wextra")
    common.add_all(["-O0", "-g"] if mode == "dbg" else ["-O3"])  # never -G: it changes every kernel
    if mode == "opt":
        common.add("-DNDEBUG")
    common.add_all(ctx.attr.gencode, format_each = "-gencode=%s")
    common.add_all(depset(ctx.attr.local_defines, transitive = [ccx.defines]), format_each = "-D%s")
    common.add_all(depset(["."], transitive = [ccx.quote_includes, ccx.includes]), format_each = "-I%s")
    common.add_all([d for d in ccx.system_includes.to_list() if "local_cuda" not in d], before_each = "-isystem")
    common.add_all(ctx.attr.copts)

    headers = [h for h in ctx.files.hdrs + ccx.headers.to_list() if _own_header(h)]
    prunable = ctx.actions.declare_file("_objs/%s/headers.txt" % ctx.label.name)
    ctx.actions.write(prunable, "".join([h.path + "\n" for h in headers]))

    objs = []
    for src in ctx.files.srcs:
        base = "_objs/%s/%s" % (ctx.label.name, src.basename)
        obj = ctx.actions.declare_file(base + ".o")
        unused = ctx.actions.declare_file(base + ".unused")
        ctx.actions.run(
            executable = ctx.executable._nvcc,
            arguments = [prunable.path, obj.path, unused.path, CUDA_HOME + "/bin/nvcc", common, "-c", src.path, "-o", obj.path],
            inputs = depset([src, prunable, ctx.file._version] + headers, transitive = [cc_toolchain.all_files]),
            # headers the last compile did not read: a change to one of them recompiles nothing
            unused_inputs_list = unused,
            outputs = [obj, unused],
            mnemonic = "CudaCompile",
            progress_message = "Compiling %s" % src.short_path,
            env = {"PATH": "/usr/bin:/bin"},
        )
        objs.append(obj)

    linking, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        # compiled with -fPIC: the same objects serve both
        compilation_outputs = cc_common.create_compilation_outputs(objects = depset(objs), pic_objects = depset(objs)),
        name = ctx.label.name,
        alwayslink = ctx.attr.alwayslink,
        disallow_dynamic_library = True,
        linking_contexts = [i.linking_context for i in infos],
    )
    own = CcInfo(
        compilation_context = cc_common.create_compilation_context(headers = depset(ctx.files.hdrs)),
        linking_context = linking,
    )
    return [
        cc_common.merge_cc_infos(direct_cc_infos = [own], cc_infos = infos),
        DefaultInfo(files = depset(objs)),
    ]

_cuda_library = rule(
    implementation = _cuda_library_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(),
        "local_defines": attr.string_list(),
        "gencode": attr.string_list(),
        "alwayslink": attr.bool(),
        "_nvcc": attr.label(default = "//third_party/cuda:nvcc", executable = True, cfg = "host"),
        "_version": attr.label(default = "@local_cuda//:version.txt", allow_single_file = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    incompatible_use_toolchain_transition = True,
)

def cuda_library(name, gencode = GENCODE, **kwargs):
    _cuda_library(
        name = name,
        gencode = gencode,
        target_compatible_with = CUDA_ONLY,  # skipped by //... without --config=cuda
        **kwargs
    )
