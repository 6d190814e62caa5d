"""The compiler's errors about a source that must not compile, as a file.

    compile_errors(
        name = "mistakes_errors",   # makes mistakes_errors.txt
        src = "mistakes.cc",
        deps = ["//actors/spec"],
    )
"""

load(
    "//third_party/pch:compile_command.bzl",
    "CPP_ATTRS",
    "CPP_TOOLCHAINS",
    "compile_command",
)

_SCRIPT = """
if "$@" 2>"$ERRORS"; then
  echo "$SOURCE compiles, and must not" >&2
  exit 1
fi
"""

def _impl(ctx):
    context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    command, toolchain_files = compile_command(ctx, [], context)
    errors = ctx.actions.declare_file(ctx.label.name + ".txt")
    ctx.actions.run_shell(
        command = _SCRIPT,
        arguments = command + ["-fsyntax-only", ctx.file.src.path],
        env = {
            "ERRORS": errors.path,
            "PATH": "/usr/bin:/bin",
            "SOURCE": ctx.file.src.path,
        },
        inputs = depset(
            [ctx.file.src],
            transitive = [context.headers, toolchain_files],
        ),
        outputs = [errors],
        mnemonic = "CompileErrors",
        progress_message = "Compiling %s, which must fail" %
                           ctx.file.src.short_path,
    )
    return [DefaultInfo(
        files = depset([errors]),
        runfiles = ctx.runfiles(files = [errors]),
    )]

compile_errors = rule(
    implementation = _impl,
    attrs = dict(
        CPP_ATTRS,
        deps = attr.label_list(providers = [CcInfo]),
        src = attr.label(allow_single_file = [".cc"], mandatory = True),
    ),
    fragments = ["cpp"],
    toolchains = CPP_TOOLCHAINS,
    incompatible_use_toolchain_transition = True,
)
