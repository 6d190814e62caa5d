"""Several sources in one compile: the headers, which are most of what the compiler
reads, are parsed once for them.

    load("//third_party/merge:defs.bzl", "cc_library", "cc_merged_test")

    cc_library(
        name = "loader",
        srcs = [
            "batch.cc",
            "checksum_avx2.cc",
            "loader.cc",
            "loader_state.h",
        ],
        apart = ["checksum_avx2.cc"],
        ...
    )

    cc_merged_test(
        name = "loader_test",
        srcs = [
            "batch_test.cc",
            "loader_test.cc",
        ],
        ...
    )

The sources become parts of at most SOURCES_MAX (TEST_SOURCES_MAX in tests/), and each
part is one generated file NAME_merged0.cc, NAME_merged1.cc, ... with the text of its
sources. Errors and stack traces have the path and the line of the source.

cc_library merges under --define=merge=1 only, which .bazelrc sets; without it an edit
recompiles one source. cc_merged_test always merges: one program of small tests.

So the unnamed namespaces of a target's sources are one: the names in them must
differ. A source stays apart if --per_file_copt in .bazelrc gives it other options
than its neighbours; copt_patterns.py in tests/style checks that. Tests that replace
sources (planted_bugs_test) replace whole parts: the linker takes all of one or nothing.
"""

SOURCES_MAX = 8

# Sources of tests instantiate the same templates of GoogleTest and of the standard
# library, and are not optimised: the more of them, the more is shared.
TEST_SOURCES_MAX = 16

# The beginning of a tag of a library for each source that does not begin a part: no
# compile shows whether its header compiles alone (tests/style/headers.bzl).
BEHIND_OTHERS = "behind_others="

# The text of each source, after its path for the compiler's messages.
_MERGE = "awk 'FNR == 1 { print \"#line 1 \\\"\" FILENAME \"\\\"\" } 1' %s >$(location %s)"

def merged_parts(name, srcs, apart = [], in_tests = False):
    """Returns {generated file: its sources} of a target; may be empty.

    Args:
      name: of the target.
      srcs: sources and private headers.
      apart: the sources that stay as they are.
      in_tests: if the target is in tests/.
    """
    sources = [
        source
        for source in srcs
        if source.endswith(".cc") and source not in apart
    ]
    if len(sources) < 2:
        return {}
    most = TEST_SOURCES_MAX if in_tests else SOURCES_MAX
    number = (len(sources) + most - 1) // most
    return {
        "%s_merged%d.cc" % (name, part): sources[len(sources) * part // number:len(sources) * (part + 1) // number]
        for part in range(number)
    }

def _merge(name, srcs, parts, **kwargs):
    """Makes the generated files, and returns what `srcs` becomes by them."""
    merged = [source for part in parts.values() for source in part]
    native.genrule(
        name = name + "_merged",
        srcs = merged,
        outs = parts.keys(),
        cmd = " && ".join([
            _MERGE % (
                " ".join(["$(location %s)" % source for source in part]),
                out,
            )
            for out, part in parts.items()
        ]),
        # Nothing that //... builds by itself.
        tags = ["manual"],
        visibility = ["//tests:__subpackages__"],  # planted_bugs_test
        **kwargs
    )
    return parts.keys() + [source for source in srcs if source not in merged]

def cc_library(name, srcs = [], apart = [], **kwargs):
    """The native rule, but for the sources under --define=merge=1.

    Args:
      name: of the library.
      srcs: sources and private headers. If they depend on a select() they stay
        separate.
      apart: those of `srcs` that are always compiled alone.
      **kwargs: all other attributes of the native rule.
    """
    parts = {}
    if type(srcs) == "list":
        in_tests = native.package_name().startswith("tests/")
        parts = merged_parts(name, srcs, apart, in_tests)
    if parts:
        kwargs["tags"] = kwargs.get("tags", []) + [
            BEHIND_OTHERS + source
            for part in parts.values()
            for source in part[1:]
        ]
        srcs = select({
            "//third_party/merge:enabled": _merge(
                name,
                srcs,
                parts,
                target_compatible_with = kwargs.get("target_compatible_with"),
                testonly = kwargs.get("testonly"),
            ),
            "//conditions:default": srcs,
        })
    native.cc_library(name = name, srcs = srcs, **kwargs)

def cc_merged_test(name, srcs, **kwargs):
    """The native cc_test, of several merged sources in every configuration.

    Not for tests that end their process, measure time, or run long: a program that
    crashes takes the results of all its sources along.

    Args:
      name: of the program.
      srcs: at least two sources, and headers.
      **kwargs: all other attributes of the native rule.
    """
    native.cc_test(
        name = name,
        srcs = _merge(
            name,
            srcs,
            merged_parts(name, srcs, in_tests = True),
            testonly = True,
        ),
        **kwargs
    )
