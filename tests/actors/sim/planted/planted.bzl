"""Tests against production's sources with bugs planted in them.

    planted_bugs_test(
        name = "cluster_bugs_test",
        srcs = [
            "bug.h",
            "cluster_bugs_test.cc",
        ],
        planted = ["//actors/cluster:control_merged0.cc"],
        deps = ["//actors/cluster:control"],
    )

The folder has bugs.txt, which says what plant.py changes in which source, and
bug.h, which names the bugs. One build holds all of them (planted_bug.h). `planted`
has the parts (//third_party/merge) in which those sources are; plant.py names a
source that is in none.
"""

_PLANT = "//tests/actors/sim/planted:plant.py"

def _plant(name, planted):
    """Copies of `planted` with this folder's bugs in them."""
    copies = {
        source: "planted_" + source.split(":")[1].replace(".cu", ".inc")
        for source in planted
    }
    native.genrule(
        name = name + "_plant",
        srcs = planted + ["bugs.txt"],
        outs = list(copies.values()),
        cmd = "python3 $(location %s) $(location bugs.txt) %s" % (
            _PLANT,
            " ".join([
                "$(location %s) $(location %s)" % pair
                for pair in copies.items()
            ]),
        ),
        tools = [_PLANT],
    )
    return list(copies.values())

def planted_bugs_test(name, srcs, planted, deps, tags = [], hunt = "hunt", **kwargs):
    """The linker takes the copies instead of the parts in the libraries.

    Args:
      name: of the test.
      srcs: its own sources.
      planted: labels of what to copy: parts of a library, NAME_merged0.cc, or
        sources that are `apart` there; or those that one of `srcs` includes as
        "planted_NAME", a .cu file as "planted_NAME.inc".
      deps: libraries, among them those of the sources.
      tags: beside no_asan.
      hunt: "hunt_alone" for sources that need no actors.
      **kwargs: size, copts, ... of the cc_test.
    """
    native.cc_test(
        name = name,
        srcs = srcs + _plant(name, planted),
        linkstatic = True,  # a shared library would use its own sources
        tags = tags + ["no_asan"],  # which would name some of the bugs before they do harm
        deps = deps + ["//tests/actors/sim/planted:" + hunt],
        **kwargs
    )
