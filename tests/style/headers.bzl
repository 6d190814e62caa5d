"""Every header compiles alone: an aspect, so that the headers of a library are one
cached action, which fails if one of them includes what its target does not declare.

Two kinds of headers:

  whose library has a source of its name, which is compiled by itself or begins a
  merged compile (third_party/merge): the ordinary build compiles it alone, since
  the source begins with it (check_style.py). Nothing is done here.

  all others, because they have no such source, or because it stands behind others in
  a merged compile, which hide what the header lacks: compiled here, several in one
  compile (headers_alone.py).

    bazel build --config=headers //...

The compiler has the precompiled header, as for sources. It hides what a header lacks
of the standard library, Abseil and GoogleTest: includes.py finds that.

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

# The first that a target has.
PRECOMPILED = [
    "third_party/pch/test_pch.h.gch",
    "third_party/pch/std_pch.h.gch",
]

def _headers_of(ctx):
    """Returns (all headers of the target, those that are compiled here)."""
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
    own, checked = [], []
    for file in files:
        if file.extension == "h":
            own.append(file)
            source = sources.get(file.short_path[:-len(".h")] + ".cc")
            if source == None or BEHIND_OTHERS + source in ctx.rule.attr.tags:
                checked.append(file)
    return own, checked

def _impl(target, ctx):
    if CcInfo not in target or target.label.workspace_name:
        return []
    own, checked = _headers_of(ctx)
    if not checked:
        return []
    context = target[CcInfo].compilation_context
    copts = getattr(ctx.rule.attr, "copts", [])
    command, toolchain_files = compile_command(ctx, copts, context)

    # A target with options of its own, as for other processors, cannot use it.
    precompiled = []
    if not copts:
        paths = {
            file.short_path: file.path
            for file in context.headers.to_list()
            if file.short_path in PRECOMPILED
        }
        precompiled = [paths[name] for name in PRECOMPILED if name in paths][:1]
    done = ctx.actions.declare_file("_headers/%s.ok" % target.label.name)
    declared = ctx.actions.args()
    declared.use_param_file("%s", use_always = True)
    declared.set_param_file_format("multiline")
    declared.add_all(context.headers)
    ctx.actions.run_shell(
        command = 'exec python3 "$@"',
        arguments = [ctx.file._script.path, declared] +
                    [file.path for file in own] +
                    ["--check"] + [file.path for file in checked] +
                    ["--"] + command +
                    [word for path in precompiled for word in ["-include-pch", path]],
        env = dict(
            {"MUST_FAIL": "1"} if "not_self_contained" in ctx.rule.attr.tags else {},
            DONE = done.path,
            PATH = "/usr/bin:/bin",
            TARGET = str(target.label),
        ),
        inputs = depset(
            own + [ctx.file._script],
            transitive = [context.headers, toolchain_files],
        ),
        outputs = [done],
        mnemonic = "HeadersAlone",
        progress_message = "Compiling %s%s alone" % (
            checked[0].short_path,
            " and %d more" % (len(checked) - 1) if len(checked) > 1 else "",
        ),
    )
    return [OutputGroupInfo(headers_alone = depset([done]))]

headers_alone = aspect(
    implementation = _impl,
    attrs = dict(
        CPP_ATTRS,
        _script = attr.label(
            default = "//tests/style:headers_alone.py",
            allow_single_file = True,
        ),
    ),
    fragments = ["cpp"],
    toolchains = CPP_TOOLCHAINS,
    incompatible_use_toolchain_transition = True,
)
