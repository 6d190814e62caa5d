"""The compiler's command line as cc_library would have it, for actions of rules
and aspects that compile something themselves."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

_ACTION = "c++-compile"

# What a rule or an aspect that calls compile_command() needs, besides
# fragments = ["cpp"] and CPP_TOOLCHAINS.
CPP_ATTRS = {
    "_cc_toolchain": attr.label(
        default = "@bazel_tools//tools/cpp:current_cc_toolchain",
    ),
}

CPP_TOOLCHAINS = ["@bazel_tools//tools/cpp:toolchain_type"]

def compile_command(ctx, copts, compilation_context):
    """Returns (compiler and flags, files of the toolchain).

    Args:
      ctx: of a rule or an aspect with CPP_ATTRS.
      copts: further flags, after those of the command line.
      compilation_context: include folders and macros; None has none.
    """
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    compiler = cc_common.get_tool_for_action(
        feature_configuration = features,
        action_name = _ACTION,
    )
    paths = {}
    if compilation_context:
        paths = {
            "include_directories": compilation_context.includes,
            "preprocessor_defines": compilation_context.defines,
            "quote_include_directories": compilation_context.quote_includes,
            "system_include_directories": compilation_context.system_includes,
        }
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        user_compile_flags = (
            ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + copts
        ),
        **paths
    )
    flags = cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = _ACTION,
        variables = variables,
    )
    return [compiler] + flags, cc_toolchain.all_files
