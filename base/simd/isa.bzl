"""Compiler flags of the instruction sets that loops are compiled for.

A library of loops is one cc_library per entry. base/cpu_isa.cc asks the CPU for
all of these features before it chooses a set.
"""

_AVX512 = [
    "-mavx512f",
    "-mavx512bw",
    "-mavx512dq",
    "-mavx512vl",
    "-mavx2",
    "-mf16c",
    "-mfma",
    "-mprefer-vector-width=512",
    # GCC 12's own avx512fintrin.h sets these off (GCC bug 105593).
    "-Wno-uninitialized",
    "-Wno-maybe-uninitialized",
]

# Name: flags. The names are those of base::CpuIsa.
ISA_COPTS = {
    "plain": [],
    "avx2": [
        "-mavx2",
        "-mf16c",
        "-mfma",
    ],
    "avx512": _AVX512,
}

# The flags that base::CpuMultipliesBF16() tests for, in addition.
AVX512_BF16_COPTS = _AVX512 + ["-mavx512bf16"]
