"""Every header compiles alone: an aspect, so that each header is one cached
action, which fails if the header includes one that its target does not declare.

Three kinds of headers:

  whose library has a source of its name, which is compiled by itself or begins a
  merged compile (third_party/merge): the ordinary build compiles it alone, since
  the source begins with it (check_style.py). Nothing is done here.

  whose source stands behind others in a merged compile, which hide what the header
  lacks: compiled here, with the precompiled header, as the source is.

  without a source of their name: compiled here, without the precompiled header;
  with it in tests/, whose headers nobody takes elsewhere.

    bazel build --config=headers //...

Compilers run without a sandbox (.bazelrc), so they see undeclared headers, too: the
action compares the list of what was read with what is declared.

A target tagged "not_self_contained" must fail: //tests/style/planted keeps two, as
the proof that both checks can.
"""

load("//third_party/merge:defs.bzl", "BEHIND_OTHERS")
load(
    "//third_party/pch:compile_command.bzl",
    "CPP_ATTRS",
    "CPP_TOOLCHAINS",
    "compile_command",
)

PRECOMPILED = "third_party/pch/std_pch.h"

# Compiles by the arguments after the first, which names a file: the list of the
# headers that the target declares. -MMD lists those that were read, apart from the
# system's; of these the ones with an absolute path are the toolchain's.
_COMPILE_ALONE = r"""
declared=$1 && shift
"$@" -MMD -MF "$DONE" || exit 1
undeclared=$(tr -s ' \\' '\n\n' <"$DONE" |
  grep '^[^/].*[^:]$' | grep -Fxv -f "$declared")
if [ -n "$undeclared" ]; then
  echo "$HEADER: includes what the deps of $TARGET do not declare:" $undeclared >&2
  exit 1
fi
"""

_MUST_FAIL = """
if ( %s ) 2>/dev/null; then
  echo "$TARGET: a header compiles alone, but is tagged not_self_contained" >&2
  exit 1
fi
: >"$DONE"
"""

def _headers_of(ctx):
    """Returns (headers whose source is behind others, headers without a source)."""
    files = [
        file
        for attribute in ["hdrs", "srcs"]
        for target in getattr(ctx.rule.attr, attribute, [])
        for file in target.files.to_list()
        if file.is_source
    ]
    # By their paths within the package, as the macro's tags have them.
    package = len(ctx.label.package) + 1
    sources = {
        file.short_path: file.short_path[package:]
        for file in files
        if file.extension == "cc"
    }
    behind, others = [], []
    for file in files:
        if file.extension == "h":
            source = sources.get(file.short_path[:-len(".h")] + ".cc")
            if source == None:
                others.append(file)
            elif BEHIND_OTHERS + source in ctx.rule.attr.tags:
                behind.append(file)
    return behind, others

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

    script = _COMPILE_ALONE
    if must_fail:
        script = _MUST_FAIL % _COMPILE_ALONE

    behind, others = _headers_of(ctx)
    if ctx.label.package.startswith("tests/") and not must_fail:
        behind = behind + others
        others = []
    precompiled = []
    if behind and PRECOMPILED in [
        file.short_path
        for file in context.headers.to_list()
    ]:
        precompiled = ["-include", PRECOMPILED]
    outputs = []
    for header in behind + others:
        done = ctx.actions.declare_file(
            "_headers/%s/%s.ok" % (target.label.name, header.basename),
        )
        declared = ctx.actions.args()
        declared.use_param_file("%s", use_always = True)
        declared.set_param_file_format("multiline")
        declared.add(header)
        declared.add_all(context.headers)

        # An empty file that includes the header: as the main file, a header would
        # be treated specially. -w: warnings are the ordinary build's business.
        ctx.actions.run_shell(
            command = script,
            arguments = [declared] + command + (precompiled if header in behind else []) + [
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
                "HEADER": header.short_path,
                "PATH": "/usr/bin:/bin",
                "TARGET": str(target.label),
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
