"""A small tree with a public and a private target, and planted mistakes: the
rules of public_targets.py must find each of them."""

import unittest

import check_style
from check_style_test import CLEAN, CLEAN_HEADER, in_a_tree

PAGE = "docs/using.md"
PUBLIC = '["//visibility:public"]'
TREE = {
    **CLEAN,
    "README.md": "",
    "docs/README.md": "",
    "nn/BUILD": """\
package(default_visibility = ["//:__subpackages__"])

cc_library(
    name = "add",
    srcs = ["add.cc"],
    hdrs = ["add.h"],
    visibility = %s,
)
""" % PUBLIC,
    PAGE: """\
## Public targets

| for | targets |
| --- | --- |
| sums | `@troupe//nn:add` |
""",
}
SUB_BUILD = """\
cc_library(
    name = "sub",
    hdrs = ["sub.h"],
    deps = ["//nn:add"],
)
"""


def header(path, include=""):
    guard = path.replace("/", "_").replace(".", "_").upper() + "_"
    text = CLEAN_HEADER.replace("NN_ADD_H_", guard)
    return text.replace("int Add", include + "int Add", 1)


def archive(name, deps):
    """The files of a tree with one of the libraries of tools/package."""
    return {
        "tools/README.md": "",
        "tools/lib/static_archive.bzl":
            "static_archive = rule(implementation = None)\n",
        "tools/lib/BUILD":
            'load("//tools/lib:static_archive.bzl", "static_archive")\n'
            'static_archive(name = "%s", deps = [%s])\n' % (name, deps),
    }


class PublicTargetsTest(unittest.TestCase):

    def expect(self, files, *report):
        self.assertEqual(in_a_tree({**TREE, **files}, check_style.check),
                         list(report))

    def test_clean_tree(self):
        self.expect({})

    def test_public_by_accident(self):
        self.expect({"nn/BUILD": TREE["nn/BUILD"] + (
            'cc_library(name = "more", visibility = %s)\n' % PUBLIC)},
            "nn/BUILD:9: //nn:more is public; list it in docs/using.md or give "
            "it a visibility")

    def test_public_by_a_default(self):
        self.expect(
            {"comm/README.md": "",
             "comm/BUILD": "package(default_visibility = %s)\n"
                           'cc_library(name = "sum")\n' % PUBLIC},
            "comm/BUILD:2: //comm:sum is public; list it in docs/using.md or "
            "give it a visibility")

    def test_exported_without_a_word(self):
        self.expect({"BUILD": 'exports_files(["README.md"])\n'},
                    "BUILD:1: //:README.md is public; list it in docs/using.md "
                    "or give it a visibility")

    def test_private_but_listed(self):
        self.expect({"nn/BUILD": TREE["nn/BUILD"].replace(PUBLIC, "[]")},
                    "docs/using.md:5: //nn:add is not public; take it from the "
                    "list")

    def test_archives_have_what_is_listed(self):
        self.expect(archive("troupe_core", '"//nn:add"'))
        self.expect(archive("troupe", ""))
        lists = "; it has what docs/using.md lists of "
        self.expect(archive("troupe_core", ""),
                    "tools/lib/BUILD:2: deps of //tools/lib:troupe_core: add "
                    "//nn:add" + lists + "base, comm, data, nn, pipeline")
        self.expect(archive("troupe_core", '"//nn:add", "//nn:b"'),
                    "tools/lib/BUILD:2: deps of //tools/lib:troupe_core: drop "
                    "//nn:b" + lists + "base, comm, data, nn, pipeline")
        self.expect(archive("troupe", '"//nn:add"'),
                    "tools/lib/BUILD:2: deps of //tools/lib:troupe: drop "
                    "//nn:add" + lists + "actors, troupe")

    def test_archive_has_no_code_for_gpus(self):
        self.expect({
            **archive("troupe_core", '"//nn:add"'),
            "nn/kernels/cuda/BUILD":
                'cc_library(name = "cuda", visibility = %s)\n' % PUBLIC,
            PAGE: TREE[PAGE] + "| GPUs | `@troupe//nn/kernels/cuda` |\n"})

    def test_public_header_includes_a_private_one(self):
        self.expect(
            {"nn/add.h": header("nn/add.h", '#include "nn/sub/sub.h"\n'),
             "nn/sub/BUILD": SUB_BUILD,
             "nn/sub/sub.h": header("nn/sub/sub.h")},
            "nn/add.h:8: a public header includes nn/sub/sub.h, which no "
            "public target has")

    def test_example_depends_on_a_private_target(self):
        self.expect(
            {"examples/README.md": "",
             "nn/sub/BUILD": SUB_BUILD,
             "nn/sub/sub.h": header("nn/sub/sub.h"),
             "examples/01/BUILD": 'cc_binary(name = "01", deps = ["//nn:add", '
                                  '"//nn/sub", ":own", "@debian//:absl"])\n'},
            "examples/01/BUILD:1: an example depends on //nn/sub:sub, which is "
            "not public")

    def test_labels_go_downwards(self):
        self.expect(
            {"base/README.md": "",
             "base/BUILD": 'cc_library(name = "a", deps = ["//nn:add"])\n'},
            "base/BUILD:1: base/ may not depend on //nn:add; it may use base/")

    def test_all_branches_of_a_select_count(self):
        self.expect(
            {"base/README.md": "",
             "base/BUILD": 'load("//base:defs.bzl", "if_cuda")\n'
                           'cc_library(name = "a", deps = if_cuda(["//nn:add"]'
                           "))\n",
             "base/defs.bzl": "def if_cuda(then):\n"
                              '    return select({"//a:b": then, "//c:d": []})\n'
             },
            "base/BUILD:2: base/ may not depend on //nn:add; it may use base/")


if __name__ == "__main__":
    unittest.main()
