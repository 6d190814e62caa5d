"""What is built where cuDNN's frontend is, and what elsewhere.

    load("//third_party/cudnn_frontend:defs.bzl", "if_cudnn_frontend")

    cc_library(
        name = "attention",
        srcs = if_cudnn_frontend(["cudnn_attention.cc"], ["no_frontend_attention.cc"]),
        deps = if_cudnn_frontend(["@cudnn_frontend//:cudnn_frontend"]),
    )
"""

load("@cudnn_frontend//:defs.bzl", "HAS_CUDNN_FRONTEND")

def if_cudnn_frontend(then, otherwise = []):
    """Returns `then` where its headers were found, `otherwise` elsewhere."""
    return then if HAS_CUDNN_FRONTEND else otherwise
