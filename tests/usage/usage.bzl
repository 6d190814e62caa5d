"""Compiles the usage examples of headers, and the C++ of pages, as usage.py
extracts them.

    cc_usage(
        name = "usage",
        words = glob(["words/*.h"]),
        deps = ["//tools:trainer"],
    )

Takes the headers of all targets that `deps` depends on, except those of tests/,
by the folders that have a file among `words`; a folder without one belongs to the
folder above it. Folders next to each other share a source, since most of a compile
is what both include. A new header is therefore compiled without being named here;
usage_test.sh names those that no target reaches. Headers and words may include
whatever `deps` provides.

With `pages`, it compiles their C++ instead, as one source with words/pages.h.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

_UsageInfo = provider(fields = ["cc_info", "headers"])

def _aspect_impl(target, ctx):
    if CcInfo not in target and not hasattr(ctx.rule.attr, "deps"):
        return [_UsageInfo(cc_info = CcInfo(), headers = depset())]
    below = [
        dep[_UsageInfo]
        for dep in getattr(ctx.rule.attr, "deps", [])
        if _UsageInfo in dep
    ]
    own = [
        file
        for attribute in ["hdrs", "srcs"]
        for source in getattr(ctx.rule.attr, attribute, [])
        for file in source.files.to_list()
        if file.is_source and file.extension == "h" and
           not file.owner.workspace_name and
           not file.short_path.startswith("tests/")
    ]
    infos = [info.cc_info for info in below]
    if CcInfo in target:
        infos.append(target[CcInfo])
    return [_UsageInfo(
        cc_info = cc_common.merge_cc_infos(cc_infos = infos),
        headers = depset(own, transitive = [info.headers for info in below]),
    )]

_usage_aspect = aspect(implementation = _aspect_impl, attr_aspects = ["deps"])

def _name(folder):
    return folder.replace("/", "_")

def _words(ctx, folder):
    """Returns a list of the folder's words, or an empty one."""
    return [
        file
        for file in ctx.files.words
        if file.basename == _name(folder) + ".h"
    ]

def _folder_with_words(folder, words):
    """Returns the nearest folder, from this one up, that has words."""
    names = [file.basename for file in words]
    parts = folder.split("/")
    for count in range(len(parts), 0, -1):
        if "_".join(parts[:count]) + ".h" in names:
            return "/".join(parts[:count])
    return folder

# Files that folders which share a source have together, at most.
_FILES_MAX = 120

def _sources_of(folders):
    """Divides the folders, {folder: files}, among sources: returns lists of names."""
    sources = []
    size = 0
    for folder, files in sorted(folders.items()):
        if not sources or size + len(files) > _FILES_MAX:
            sources.append([])
            size = 0
        sources[-1].append(folder)
        size += len(files)
    return sources

def _source(ctx, names, folders):
    """Declares the action that writes the source of these folders' usage."""
    source = ctx.actions.declare_file(
        "%s/%s.cc" % (ctx.label.name, _name(names[0])),
    )
    arguments = [ctx.file._generator.path, "source"]
    inputs = [ctx.file._generator]
    for folder in names:
        words = _words(ctx, folder)
        arguments.append("--folder=" + _name(folder))
        arguments += ["--words=" + file.short_path for file in words]
        arguments += [file.path for file in folders[folder]]
        inputs += words + folders[folder]
    ctx.actions.run_shell(
        command = 'python3 "$@" >' + source.path,
        arguments = arguments,
        inputs = inputs,
        outputs = [source],
        mnemonic = "Usage",
        progress_message = "Reading the usage in " + ", ".join(names),
    )
    return source

def _impl(ctx):
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    cc_info = cc_common.merge_cc_infos(
        cc_infos = [dep[_UsageInfo].cc_info for dep in ctx.attr.deps],
    )
    folders = {}
    headers = depset(
        transitive = [dep[_UsageInfo].headers for dep in ctx.attr.deps],
    ).to_list()
    for file in [] if ctx.files.pages else headers:
        folder = file.dirname
        if folder in ctx.attr.but_folders:
            continue
        if not ctx.attr.folders or folder in ctx.attr.folders:
            source = _folder_with_words(folder, ctx.files.words)
            folders.setdefault(source, []).append(file)

    if ctx.files.pages:
        folders["pages"] = ctx.files.pages

    objects = []
    for names in _sources_of(folders):
        words = [file for folder in names for file in _words(ctx, folder)]
        _, outputs = cc_common.compile(
            # Includes the label, since two targets may compile one folder.
            name = ctx.label.name + "_" + _name(names[0]),
            actions = ctx.actions,
            feature_configuration = features,
            cc_toolchain = cc_toolchain,
            srcs = [_source(ctx, names, folders)],
            private_hdrs = headers + words,
            compilation_contexts = [cc_info.compilation_context],
            # No warnings, since most variables are unused; the code never runs.
            user_compile_flags = ["-w", "-O0", "-g0"],
            disallow_pic_outputs = True,
        )
        objects += outputs.objects

    compiled = ctx.actions.declare_file(ctx.label.name + ".txt")
    ctx.actions.write(compiled, "".join(sorted([
        file.short_path + "\n"
        for files in folders.values()
        for file in files
    ])))
    return [
        # The objects are outputs too, so that using the list compiles them.
        DefaultInfo(
            files = depset([compiled] + objects),
            runfiles = ctx.runfiles(files = [compiled] + objects),
        ),
    ]

cc_usage = rule(
    implementation = _impl,
    attrs = {
        "deps": attr.label_list(aspects = [_usage_aspect]),
        # Folders whose headers are compiled; empty: all.
        "folders": attr.string_list(),
        # Folders whose headers are not compiled.
        "but_folders": attr.string_list(),
        # Pages (.md) whose C++ is compiled, instead of that of headers.
        "pages": attr.label_list(allow_files = [".md"]),
        # Headers that declare names for the usage, at most one per folder.
        "words": attr.label_list(allow_files = [".h"]),
        "_cc_toolchain": attr.label(
            default = "@bazel_tools//tools/cpp:current_cc_toolchain",
        ),
        "_generator": attr.label(
            default = "//tests/usage:usage.py",
            allow_single_file = True,
        ),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    incompatible_use_toolchain_transition = True,
)
