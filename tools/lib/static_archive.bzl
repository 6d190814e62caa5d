"""static_archive: libraries and their dependencies in one archive lib<name>.a.

    load("//tools/lib:static_archive.bzl", "static_archive")

    static_archive(
        name = "troupe",                  # libtroupe.a, libtroupe.headers
        deps = ["//actors:job", "//nn/ops"],
        system_archives = "libabsl_",     # of Debian's, those go in too
    )

lib<name>.headers lists the headers of `deps`, a path on each line. They are
among the target's runfiles.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _linker_inputs(ctx):
    return cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).linking_context.linker_inputs.to_list()

def _own_archives(inputs):
    return [
        library.static_library or library.pic_static_library
        for input in inputs
        for library in input.libraries
    ]

def _system_archives(inputs, prefix):
    flags = [flag for input in inputs for flag in input.user_link_flags]
    return depset([f[len("-l:"):] for f in flags if f.startswith("-l:" + prefix)])

def _impl(ctx):
    inputs = _linker_inputs(ctx)
    own = _own_archives(inputs)
    archive = ctx.actions.declare_file("lib%s.a" % ctx.label.name)
    cc_toolchain = find_cpp_toolchain(ctx)
    args = ctx.actions.args()
    args.add(archive)
    args.add_all(own)
    args.add("--")
    args.add_all(_system_archives(inputs, ctx.attr.system_archives))
    ctx.actions.run(
        executable = ctx.executable._merge,
        arguments = [cc_toolchain.ar_executable, args],
        inputs = depset(own, transitive = [cc_toolchain.all_files]),
        outputs = [archive],
        mnemonic = "StaticArchive",
        env = {"PATH": "/usr/bin:/bin"},
    )

    public = depset(transitive = [
        depset(dep[CcInfo].compilation_context.direct_public_headers)
        for dep in ctx.attr.deps
    ]).to_list()
    headers = ctx.actions.declare_file("lib%s.headers" % ctx.label.name)
    ctx.actions.write(
        headers,
        "".join([path + "\n" for path in sorted([h.short_path for h in public])]),
    )
    outputs = [archive, headers]
    return [DefaultInfo(
        files = depset(outputs),
        runfiles = ctx.runfiles(files = outputs + public),
    )]

static_archive = rule(
    implementation = _impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "system_archives": attr.string(mandatory = True),
        "_merge": attr.label(
            default = "//tools/lib:merge_archives",
            executable = True,
            cfg = "host",
        ),
        "_cc_toolchain": attr.label(
            default = "@bazel_tools//tools/cpp:current_cc_toolchain",
        ),
    },
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    incompatible_use_toolchain_transition = True,
)
