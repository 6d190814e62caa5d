"""Every header compiles alone: an aspect, so that each header is one cached
action that sees only what its target declares.

A header with a source of its own name is left out: the source begins with it
(check_style.py), so that the ordinary build has compiled it alone.

    bazel build --config=headers //...

A target tagged "not_self_contained" must fail: //tests/style/planted keeps one,
as the proof that the check can.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

_ACTION = "c++-compile"

def _headers_of(ctx):
    files = [
        file
        for attribute in ["hdrs", "srcs"]
        for target in getattr(ctx.rule.attr, attribute, [])
        for file in target.files.to_list()
        if file.is_source
    ]
    sources = [file.short_path for file in files if file.extension == "cc"]
    return [
        file
        for file in files
        if file.extension == "h" and
           file.short_path[:-len(".h")] + ".cc" not in sources
    ]

def _flags(ctx, cc_toolchain, features, compilation_context):
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        user_compile_flags = (
            ctx.fragments.cpp.copts +
            ctx.fragments.cpp.cxxopts +
            getattr(ctx.rule.attr, "copts", [])
        ),
        include_directories = compilation_context.includes,
        quote_include_directories = compilation_context.quote_includes,
        system_include_directories = compilation_context.system_includes,
        preprocessor_defines = compilation_context.defines,
    )
    return cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = _ACTION,
        variables = variables,
    )

def _impl(target, ctx):
    if CcInfo not in target or target.label.workspace_name:
        return []
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    compiler = cc_common.get_tool_for_action(
        feature_configuration = features,
        action_name = _ACTION,
    )
    context = target[CcInfo].compilation_context
    flags = _flags(ctx, cc_toolchain, features, context)
    must_fail = "not_self_contained" in ctx.rule.attr.tags

    # An empty file that includes the header: as the main file, a header would
    # be treated specially. -w: warnings are the ordinary build's business.
    script = '"$@" && touch "$DONE"'
    if must_fail:
        script = 'if "$@" 2>/dev/null; then echo "%s: a header compiles alone, but is tagged not_self_contained" >&2; exit 1; fi; touch "$DONE"' % target.label

    outputs = []
    for header in _headers_of(ctx):
        done = ctx.actions.declare_file(
            "_headers/%s/%s.ok" % (target.label.name, header.basename),
        )
        ctx.actions.run_shell(
            command = script,
            arguments = [compiler] + flags + [
                "-w",
                "-fsyntax-only",
                "-include",
                header.path,
                "-x",
                "c++",
                "/dev/null",
            ],
            env = {
                "DONE": done.path,
                "PATH": "/usr/bin:/bin",
            },
            inputs = depset(
                [header],
                transitive = [context.headers, cc_toolchain.all_files],
            ),
            outputs = [done],
            mnemonic = "HeaderAlone",
            progress_message = "Compiling %s alone" % header.short_path,
        )
        outputs.append(done)
    return [OutputGroupInfo(headers_alone = depset(outputs))]

headers_alone = aspect(
    implementation = _impl,
    attrs = {
        "_cc_toolchain": attr.label(
            default = "@bazel_tools//tools/cpp:current_cc_toolchain",
        ),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    incompatible_use_toolchain_transition = True,
)
