"""Every header compiles alone: an aspect, so that each header is one cached
action that sees only what its target declares.

A header whose library has a source of its name gets the precompiled header, as the
source does, and is quick: the source begins with it (check_style.py), but may stand
behind others in one compile (third_party/merge), which would hide what it lacks.

    bazel build --config=headers //...

A target tagged "not_self_contained" must fail: //tests/style/planted keeps one,
as the proof that the check can.
"""

load(
    "//third_party/pch:compile_command.bzl",
    "CPP_ATTRS",
    "CPP_TOOLCHAINS",
    "compile_command",
)

PRECOMPILED = "third_party/pch/std_pch.h"

def _headers_of(ctx):
    """Returns (headers with a source of their name, other headers)."""
    files = [
        file
        for attribute in ["hdrs", "srcs"]
        for target in getattr(ctx.rule.attr, attribute, [])
        for file in target.files.to_list()
        if file.is_source
    ]
    sources = [file.short_path for file in files if file.extension == "cc"]
    with_source, others = [], []
    for file in files:
        if file.extension == "h":
            source = file.short_path[:-len(".h")] + ".cc"
            (with_source if source in sources else others).append(file)
    return with_source, others

def _impl(target, ctx):
    if CcInfo not in target or target.label.workspace_name:
        return []
    context = target[CcInfo].compilation_context
    command, toolchain_files = compile_command(
        ctx,
        getattr(ctx.rule.attr, "copts", []),
        context,
    )
    must_fail = "not_self_contained" in ctx.rule.attr.tags

    # An empty file that includes the header: as the main file, a header would
    # be treated specially. -w: warnings are the ordinary build's business.
    script = '"$@" && touch "$DONE"'
    if must_fail:
        script = 'if "$@" 2>/dev/null; then echo "%s: a header compiles alone, but is tagged not_self_contained" >&2; exit 1; fi; touch "$DONE"' % target.label

    with_source, others = _headers_of(ctx)
    precompiled = []
    if with_source and PRECOMPILED in [
        file.short_path
        for file in context.headers.to_list()
    ]:
        precompiled = ["-include", PRECOMPILED]
    outputs = []
    for header in with_source + others:
        done = ctx.actions.declare_file(
            "_headers/%s/%s.ok" % (target.label.name, header.basename),
        )
        ctx.actions.run_shell(
            command = script,
            arguments = command + (precompiled if header in with_source else []) + [
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
                transitive = [context.headers, toolchain_files],
            ),
            outputs = [done],
            mnemonic = "HeaderAlone",
            progress_message = "Compiling %s alone" % header.short_path,
        )
        outputs.append(done)
    return [OutputGroupInfo(headers_alone = depset(outputs))]

headers_alone = aspect(
    implementation = _impl,
    attrs = CPP_ATTRS,
    fragments = ["cpp"],
    toolchains = CPP_TOOLCHAINS,
    incompatible_use_toolchain_transition = True,
)
