"""static_archive: libraries and their dependencies in one archive lib<name>.a.

    load("//tools/lib:static_archive.bzl", "static_archive")

    static_archive(
        name = "troupe_core",
        deps = ["//nn/ops"],
        system_archives = "libabsl_",     # of Debian's, those go in too
    )

    static_archive(
        name = "troupe",                  # linked before the other one
        beside = ":troupe_core",          # leaves out what that archive has
        deps = ["//actors:job"],
        system_archives = "libabsl_",
    )

lib<name>.headers lists the headers of `deps`, lib<name>.libraries the system's
libraries that they link besides ("-lz"), without those of `beside`; each has an
entry on a line. The headers are among the target's runfiles.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

_Contents = provider(
    doc = "What an archive has, for the one that is linked before it.",
    fields = {
        "libraries": "depset of the archives of which it was made",
        "flags": "depset of the flags that its users link",
    },
)

def _contents(ctx):
    inputs = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).linking_context.linker_inputs.to_list()
    return _Contents(
        libraries = depset([
            library.static_library or library.pic_static_library
            for input in inputs
            for library in input.libraries
        ]),
        flags = depset([
            flag
            for input in inputs
            for flag in input.user_link_flags
            if flag.startswith("-l")
        ]),
    )

def _without(items, excluded):
    found = {item: None for item in excluded.to_list()}
    return [item for item in items.to_list() if item not in found]

def _lines(words):
    return "".join([word + "\n" for word in words])

def _impl(ctx):
    contents = _contents(ctx)
    beside = _Contents(libraries = depset(), flags = depset())
    if ctx.attr.beside:
        beside = ctx.attr.beside[_Contents]
    own = _without(contents.libraries, beside.libraries)
    flags = _without(contents.flags, beside.flags)
    system = "-l:" + ctx.attr.system_archives

    archive = ctx.actions.declare_file("lib%s.a" % ctx.label.name)
    cc_toolchain = find_cpp_toolchain(ctx)
    args = ctx.actions.args()
    args.add(archive)
    args.add_all(own)
    args.add("--")
    args.add_all([f[len("-l:"):] for f in flags if f.startswith(system)])
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
    ctx.actions.write(headers, _lines(sorted([h.short_path for h in public])))
    libraries = ctx.actions.declare_file("lib%s.libraries" % ctx.label.name)
    ctx.actions.write(
        libraries,
        _lines([f for f in flags if not f.startswith(system)]),
    )
    outputs = [archive, headers, libraries]
    return [contents, DefaultInfo(
        files = depset(outputs),
        runfiles = ctx.runfiles(files = outputs + public),
    )]

static_archive = rule(
    implementation = _impl,
    attrs = {
        "beside": attr.label(providers = [_Contents]),
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
