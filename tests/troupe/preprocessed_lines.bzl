"""A test of how much a source includes: its lines after preprocessing, without
empty ones. Unlike seconds, they are the same on every run.

    preprocessed_lines_test(
        name = "header_lines_test",
        src = "program.cc",
        deps = ["//troupe"],
        lines_max = 100000,
    )
"""

load(
    "//third_party/pch:compile_command.bzl",
    "CPP_ATTRS",
    "CPP_TOOLCHAINS",
    "compile_command",
)

_TEST = """#!/bin/bash
lines=$(<"{lines}")
echo "{source} has $lines lines after preprocessing; the limit is {lines_max}"
if (( lines == 0 || lines > {lines_max} )); then
  echo "g++ -H shows what includes what; leave out headers, or raise the limit"
  exit 1
fi
"""

def _impl(ctx):
    context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    command, toolchain_files = compile_command(ctx, [], context)
    lines = ctx.actions.declare_file(ctx.label.name + ".txt")
    ctx.actions.run_shell(
        command = 'set -o pipefail; "$@" | wc -l >"$LINES"',
        arguments = command + ["-E", "-P", ctx.file.src.path],
        env = {
            "LINES": lines.path,
            "PATH": "/usr/bin:/bin",
        },
        inputs = depset(
            [ctx.file.src],
            transitive = [context.headers, toolchain_files],
        ),
        outputs = [lines],
        mnemonic = "PreprocessedLines",
        progress_message = "Counting the lines of %s" % ctx.file.src.short_path,
    )
    test = ctx.actions.declare_file(ctx.label.name + ".sh")
    ctx.actions.write(
        test,
        _TEST.format(
            lines = lines.short_path,
            lines_max = ctx.attr.lines_max,
            source = ctx.file.src.short_path,
        ),
        is_executable = True,
    )
    return [DefaultInfo(
        executable = test,
        runfiles = ctx.runfiles(files = [lines]),
    )]

preprocessed_lines_test = rule(
    implementation = _impl,
    attrs = dict(
        CPP_ATTRS,
        deps = attr.label_list(providers = [CcInfo]),
        lines_max = attr.int(mandatory = True),
        src = attr.label(allow_single_file = [".cc"], mandatory = True),
    ),
    fragments = ["cpp"],
    test = True,
    toolchains = CPP_TOOLCHAINS,
    incompatible_use_toolchain_transition = True,
)
