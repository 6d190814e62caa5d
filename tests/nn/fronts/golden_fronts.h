// Comparison of fronts with PyTorch: the cases of tools/golden/fronts, whose
// outputs and gradients are in
// tests/golden/fronts_<family>_{f32,f64}.safetensors.
//
//   TEST(ReferenceFronts, AgreeWithPyTorch) {
//     ExpectGoldenFronts(*CreateReferenceKernels(), DType::kF64);
//   }
//
// A case there corresponds to the case of AllFrontCases() of the same name;
// inputs and output gradients are GoldenInput("<case>/<number>") and
// ("<case>/dy").

#ifndef TESTS_NN_FRONTS_GOLDEN_FRONTS_H_
#define TESTS_NN_FRONTS_GOLDEN_FRONTS_H_

#include "nn/kernels/kernels.h"

namespace troupe::nn {

// Runs every case of every family in `dtype`, f32 or f64, on `kernels`, whose
// memory the host can read, and expects PyTorch's outputs and gradients within
// OpTolerance(dtype).
void ExpectGoldenFronts(Kernels& kernels, DType dtype);

}  // namespace troupe::nn

#endif  // TESTS_NN_FRONTS_GOLDEN_FRONTS_H_
