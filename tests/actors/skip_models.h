// Models with skip connections (nn/modules/skip.h), for jobs that cut them into
// stages: Sequentials that look like a U-Net.
//
//   JobSpec spec = SmallJob({/*ranks=*/1, Numbers::kExact});
//   spec.model = DenseUNet();
//   spec.plan.cuts = {3, 6, 11};             // four stages

#ifndef TESTS_ACTORS_SKIP_MODELS_H_
#define TESTS_ACTORS_SKIP_MODELS_H_

#include "nn/modules/module.h"

namespace troupe::actors {

struct DenseUNetOptions {
  bool recompute = false;                // recompute its one block (dropout)
  bool ends_without_parameters = false;  // append a module without any
};

// Maps f64[N, 4] to f64[N, 2], in kDenseUNetModules modules, with dropout. Skip
// connections of several shapes and of three dtypes (f64, bf16, i64) overlap,
// and one is popped by a module that does not use it. Its modules read tensors
// on the host.
inline constexpr int kDenseUNetModules = 16;
nn::ModelFactory DenseUNet(const DenseUNetOptions& options = {});

// Maps f32[N, 28, 28, 1] to f32[N, 10], in kImageUNetModules modules:
// convolutions, pooling, up-convolutions, a sum and a concatenation.
inline constexpr int kImageUNetModules = 15;
nn::ModelFactory ImageUNet();

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_SKIP_MODELS_H_
