"""precompiled_header: parses headers of libraries once, not for every source.

    precompiled_header(
        name = "std_pch",    # makes std_pch.h and, compiled, std_pch.h.gch
        src = "std.h",
    )

Targets that depend on it may be compiled with -include third_party/pch/std_pch.h
(.bazelrc does). The compiler takes the compiled form only where its options are
those of the command line here, and complains otherwise (-Winvalid-pch).
"""

load(
    ":compile_command.bzl",
    "CPP_ATTRS",
    "CPP_TOOLCHAINS",
    "compile_command",
)

# Clang refuses a precompiled header whose sources have other times, as they do
# in a sandbox and in a second clone.
_COMPILE = """
if "$1" --version | grep -q clang; then
  set -- "$@" -Xclang -fno-pch-timestamp -fpch-instantiate-templates
fi
exec "$@"
"""

def _impl(ctx):
    # No source file has this name: a compiler would find that first, and parse
    # it silently.
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    ctx.actions.symlink(output = header, target_file = ctx.file.src)
    compiled = ctx.actions.declare_file(ctx.label.name + ".h.gch")
    command, toolchain_files = compile_command(ctx, ctx.attr.copts, None)
    script, source = _COMPILE, [header.path]
    if command[0].endswith("clang"):
        # Clang also refuses one whose sources lie elsewhere, as they do where a
        # cache gives it to another clone: it gets them as one text, and keeps that.
        sources = [file.path for file in ctx.files.hdrs + [ctx.file.src]]
        script = "cat %s | grep -v '^#include \"third_party/' | {%s}" % (
            " ".join(sources),
            _COMPILE,
        )
        source = ["-", "-Xclang", "-fmodules-embed-all-files"]
    ctx.actions.run_shell(
        command = script,
        arguments = command + [
            "-iquote",
            # Empty where Troupe is the workspace that is built.
            ctx.label.workspace_root or ".",
            "-x",
            "c++-header",
        ] + source + [
            "-o",
            compiled.path,
        ],
        env = {"PATH": "/usr/bin:/bin"},
        inputs = depset(
            [header, ctx.file.src] + ctx.files.hdrs,
            transitive = [toolchain_files],
        ),
        outputs = [compiled],
        mnemonic = "PrecompiledHeader",
        progress_message = "Precompiling %s" % ctx.file.src.short_path,
    )
    # The sources too: clang reads them where a source has other options than the
    # compiled header.
    return [CcInfo(compilation_context = cc_common.create_compilation_context(
        headers = depset([header, compiled, ctx.file.src] + ctx.files.hdrs),
    ))]

precompiled_header = rule(
    implementation = _impl,
    attrs = dict(
        CPP_ATTRS,
        copts = attr.string_list(
            doc = "After those of the command line, as in per_file_copt.",
        ),
        hdrs = attr.label_list(
            doc = "Headers of Troupe's that src includes.",
            allow_files = [".h"],
        ),
        src = attr.label(allow_single_file = [".h"], mandatory = True),
    ),
    fragments = ["cpp"],
    toolchains = CPP_TOOLCHAINS,
    incompatible_use_toolchain_transition = True,
)
