"""Tests against production's sources with bugs planted in them.

    planted_bugs_test(
        name = "cluster_bugs_test",
        srcs = [
            "bug.h",
            "cluster_bugs_test.cc",
        ],
        planted = ["//actors/cluster:agent.cc"],
        deps = ["//actors/cluster:control"],
    )

The folder has bugs.txt, which says what plant.py changes in which source, and
bug.h, which names the bugs. One build holds all of them (planted_bug.h).
"""

_PLANT = "//tests/actors/sim/planted:plant.py"

def _plant(source):
    """A copy of `source` with this folder's bugs in it."""
    name = source.split(":")[1]
    copy = "planted_" + name.replace(".cu", ".inc")
    native.genrule(
        name = "plant_" + name,
        srcs = [
            source,
            "bugs.txt",
        ],
        outs = [copy],
        cmd = "python3 $(location {plant}) {path} $(location bugs.txt) < $(location {source}) > $@".format(
            path = source[2:].replace(":", "/"),
            plant = _PLANT,
            source = source,
        ),
        tools = [_PLANT],
    )
    return copy

def planted_bugs_test(name, srcs, planted, deps, tags = [], hunt = "hunt", **kwargs):
    """The linker takes the copies instead of the sources in the libraries, where
    those are `apart` (//third_party/merge).

    Args:
      name: of the test.
      srcs: its own sources.
      planted: labels of the sources to copy: .cc files, or those that one of
        `srcs` includes as "planted_NAME", a .cu file as "planted_NAME.inc".
      deps: libraries, among them those of the sources.
      tags: beside no_asan.
      hunt: "hunt_alone" for sources that need no actors.
      **kwargs: size, copts, ... of the cc_test.
    """
    native.cc_test(
        name = name,
        srcs = srcs + [_plant(source) for source in planted],
        linkstatic = True,  # a shared library would use its own sources
        tags = tags + ["no_asan"],  # which would name some of the bugs before they do harm
        deps = deps + ["//tests/actors/sim/planted:" + hunt],
        **kwargs
    )
