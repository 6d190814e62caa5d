"""Rules for GPU code: cuda_library, cuda_cc_library, if_cuda and CUDA_ONLY.

    load("//third_party/cuda:defs.bzl", "cuda_cc_library", "cuda_library")

    cuda_library(
        name = "sgd_update",
        srcs = ["sgd_update.cu"],
        hdrs = ["sgd_update.h"],
        cuda_deps = ["//base/cuda:launch"],
        deps = ["@debian//:absl"],
    )

    cuda_cc_library(
        name = "cuda_device",
        srcs = ["cuda_device.cc"],
        hdrs = ["cuda_device.h"],
        cuda_deps = [":sgd_update"],
    )

    cc_library(name = "user", deps = if_cuda([":sgd_update"]))

Each of the two makes two targets. NAME is for the GPU, under --config=cuda only:
cuda_library compiles .cu files with nvcc and hands on a CcInfo, so that cc_*
targets depend on it like on a cc_library. NAME_emulated is for tests, in every
build for which the toolkit's headers are there: the same sources, compiled by the
host's compiler against //base/cuda/emulated.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@local_cuda//:defs.bzl", "CUDA_HOME", "CUDA_MISSING")
load("//third_party/merge:defs.bzl", "cc_library")

# Hopper (H100, H200) with its own features (wgmma, setmaxnreg). One architecture
# keeps builds short; a library that wants more says so in `gencode`.
GENCODE_DEFAULT = ["arch=compute_90a,code=sm_90a"]

# target_compatible_with of what cannot be built without CUDA: `//...` then
# skips it unless --config=cuda is given.
CUDA_ONLY = select({
    "//third_party/cuda:enabled": [],
    "//conditions:default": ["@platforms//:incompatible"],
})

# target_compatible_with of what is compiled against the toolkit's headers alone:
# `//...` then skips it where there is no toolkit.
CUDA_HEADERS = ["@platforms//:incompatible"] if CUDA_MISSING else []

# Kernels look at float4 views of arrays, and at #pragma unroll; the assembler
# remarks on the section of __shared__ variables in templates.
_EMULATED_COPTS = [
    "-fno-strict-aliasing",
    "-Wno-unknown-pragmas",
    "-Wa,--no-warn",
    "-g1",  # races and sanitizers name the lines of kernels
]

def if_cuda(then, otherwise = []):
    """Returns `then` under --config=cuda, `otherwise` without it."""
    return select({
        "//third_party/cuda:enabled": then,
        "//conditions:default": otherwise,
    })

def _nvcc_arguments(ctx, host_compiler, compilation_context):
    args = ctx.actions.args()
    args.add("-ccbin", host_compiler)
    args.add_all(["-std=c++17", "--expt-relaxed-constexpr", "-lineinfo"])
    args.add("-Xcompiler=-fPIC,-Wall,-Wextra,-Wno-psabi")
    args.add_all(["-Werror", "all-warnings"])

    # Never -G, which changes every kernel.
    mode = ctx.var["COMPILATION_MODE"]
    args.add_all(["-O0", "-g"] if mode == "dbg" else ["-O3"])
    if mode == "opt":
        args.add("-DNDEBUG")

    # No contraction that depends on code placement, on the device too.
    args.add("--fmad=false")
    args.add_all(ctx.attr.gencode, format_each = "-gencode=%s")
    args.add_all(
        depset(ctx.attr.local_defines, transitive = [compilation_context.defines]),
        format_each = "-D%s",
    )
    args.add_all(
        depset(["."], transitive = [
            compilation_context.quote_includes,
            compilation_context.includes,
        ]),
        format_each = "-I%s",
    )
    args.add_all(
        [
            d
            for d in compilation_context.system_includes.to_list()
            if "local_cuda" not in d
        ],
        before_each = "-isystem",
    )
    args.add_all(ctx.attr.copts)
    return args

def _compile(ctx, src, cc_toolchain, args, headers, headers_list):
    """Declares the nvcc action of one .cu file and returns its object."""
    base = "_objs/%s/%s" % (ctx.label.name, src.basename)
    obj = ctx.actions.declare_file(base + ".o")
    unused = ctx.actions.declare_file(base + ".unused")
    ctx.actions.run(
        executable = ctx.executable._nvcc,
        arguments = [
            headers_list.path,
            obj.path,
            unused.path,
            CUDA_HOME + "/bin/nvcc",
            args,
            "-c",
            src.path,
            "-o",
            obj.path,
        ],
        inputs = depset(
            [src, headers_list, ctx.file._version] + headers,
            transitive = [cc_toolchain.all_files],
        ),
        unused_inputs_list = unused,
        outputs = [obj, unused],
        mnemonic = "CudaCompile",
        progress_message = "Compiling %s" % src.short_path,
        env = {"PATH": "/usr/bin:/bin"},
    )
    return obj

def _cuda_library_impl(ctx):
    if CUDA_MISSING:
        fail(CUDA_MISSING)
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    host_compiler = cc_common.get_tool_for_action(
        feature_configuration = features,
        action_name = "c++-compile",
    )
    dep_infos = [dep[CcInfo] for dep in ctx.attr.deps]
    deps = cc_common.merge_cc_infos(cc_infos = dep_infos)

    # nvcc finds the toolkit's headers itself; version.txt stands for them all.
    headers = [
        h
        for h in ctx.files.hdrs + deps.compilation_context.headers.to_list()
        if "local_cuda" not in h.path
    ]
    headers_list = ctx.actions.declare_file(
        "_objs/%s/headers.txt" % ctx.label.name,
    )
    ctx.actions.write(headers_list, "".join([h.path + "\n" for h in headers]))
    args = _nvcc_arguments(ctx, host_compiler, deps.compilation_context)
    objects = depset([
        _compile(ctx, src, cc_toolchain, args, headers, headers_list)
        for src in ctx.files.srcs
    ])

    linking_context, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        # Compiled with -fPIC: the same objects serve both kinds.
        compilation_outputs = cc_common.create_compilation_outputs(
            objects = objects,
            pic_objects = objects,
        ),
        name = ctx.label.name,
        disallow_dynamic_library = True,
        linking_contexts = [info.linking_context for info in dep_infos],
    )
    own = CcInfo(
        compilation_context = cc_common.create_compilation_context(
            headers = depset(ctx.files.hdrs),
        ),
        linking_context = linking_context,
    )
    return [
        cc_common.merge_cc_infos(direct_cc_infos = [own], cc_infos = dep_infos),
        DefaultInfo(files = objects),
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
        "_nvcc": attr.label(
            default = "//third_party/cuda:nvcc",
            executable = True,
            cfg = "host",
        ),
        "_version": attr.label(
            default = "@local_cuda//:version.txt",
            allow_single_file = True,
        ),
        "_cc_toolchain": attr.label(
            default = "@bazel_tools//tools/cpp:current_cc_toolchain",
        ),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    incompatible_use_toolchain_transition = True,
)

def _emulated_label(label):
    """//a/b becomes //a/b:b_emulated, and :c becomes :c_emulated."""
    if ":" not in label:
        label += ":" + label.split("/")[-1]
    return label + "_emulated"

def _emulated_library(name, cuda_deps, deps, **kwargs):
    cc_library(
        name = name + "_emulated",
        testonly = True,
        target_compatible_with = CUDA_HEADERS,
        deps = deps + [_emulated_label(label) for label in cuda_deps] + [
            "//base/cuda/emulated:executor",
            "@local_cuda//:headers",
        ],
        **kwargs
    )

def cuda_library(
        name,
        srcs,
        hdrs = [],
        deps = [],
        cuda_deps = [],
        gencode = GENCODE_DEFAULT,
        apart = [],
        **kwargs):
    """Compiles .cu files, by nvcc and for the CPU; see the top of this file.

    Args:
      name: the target for the GPU; NAME_emulated is the one for tests.
      srcs: .cu files.
      hdrs: headers of both.
      deps: libraries of both that know no CUDA.
      cuda_deps: libraries made by these macros; the emulated target depends on
        their emulated ones.
      gencode: nvcc's -gencode values, one per architecture.
      apart: those of `srcs` that are compiled alone for the CPU, too
        (//third_party/merge).
      **kwargs: visibility, copts and local_defines of nvcc, ...
    """
    _cuda_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        deps = deps + cuda_deps + ["@local_cuda//:cudart_static"],
        gencode = gencode,
        target_compatible_with = CUDA_ONLY,
        **kwargs
    )

    # The host's compiler takes no .cu: a source of one line includes it.
    sources = {src: src.replace(".cu", "_emulated.cc") for src in srcs}
    for src, source in sources.items():
        native.genrule(
            name = "%s_emulated_%s" % (name, source.replace(".", "_")),
            outs = [source],
            cmd = "echo '#include \"%s/%s\"' > $@" % (
                native.package_name(),
                src,
            ),
        )
    _emulated_library(
        name,
        cuda_deps,
        deps,
        srcs = sources.values(),
        hdrs = hdrs,
        apart = [sources[src] for src in apart],
        textual_hdrs = srcs,
        copts = _EMULATED_COPTS,
        local_defines = kwargs.get("local_defines", []),
        visibility = kwargs.get("visibility"),
    )

def cuda_cc_library(
        name,
        srcs = [],
        hdrs = [],
        deps = [],
        cuda_deps = [],
        **kwargs):
    """A cc_library that calls CUDA's runtime; see the top of this file.

    Args:
      name: the target for the GPU; NAME_emulated is the one for tests.
      srcs: .cc files and headers.
      hdrs: headers.
      deps: libraries of both that know no CUDA.
      cuda_deps: libraries made by these macros; the emulated target depends on
        their emulated ones.
      **kwargs: visibility, copts, local_defines, ... of both.
    """
    cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        deps = deps + cuda_deps + ["@local_cuda//:cudart_static"],
        target_compatible_with = CUDA_ONLY,
        **kwargs
    )
    _emulated_library(
        name,
        cuda_deps,
        deps,
        srcs = srcs,
        hdrs = hdrs,
        **kwargs
    )
