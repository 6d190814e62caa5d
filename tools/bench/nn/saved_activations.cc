#include "tools/bench/nn/saved_activations.h"

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/buffer.h"
#include "nn/autograd/context.h"
#include "nn/autograd/tape.h"
#include "nn/modules/module.h"

namespace troupe::bench {
namespace {

struct Batch {
  nn::Tensor inputs, targets;
};

// Returns floats of `loaded` converted to `dtype`, and integers unchanged.
absl::StatusOr<nn::Tensor> InDType(const nn::Tensor& loaded, nn::DType dtype,
                                   nn::Kernels& kernels) {
  if (!nn::IsFloating(loaded.dtype()) || loaded.dtype() == dtype) return loaded;
  TROUPE_ASSIGN_OR_RETURN(
      nn::Tensor converted,
      nn::Tensor::Create(loaded.shape(), dtype, kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels.Copy(loaded, converted));
  return converted;
}

// Loads a rank's first batch.
absl::StatusOr<Batch> LoadBatch(const actors::JobSpec& spec,
                                nn::Kernels& kernels) {
  const data::SampleSpec& sample = spec.train->spec();
  const std::int64_t size = spec.plan.global_batch_size / spec.plan.mesh.dp();
  std::vector<std::int64_t> indices(size);
  std::iota(indices.begin(), indices.end(), 0);
  Batch batch;
  TROUPE_ASSIGN_OR_RETURN(
      batch.inputs,
      nn::Tensor::Create(sample.InputShape(size), sample.input_dtype,
                         kernels.allocator()));
  TROUPE_ASSIGN_OR_RETURN(
      batch.targets,
      nn::Tensor::Create(sample.TargetShape(size), sample.target_dtype,
                         kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(
      spec.train->Fill(indices, /*epoch=*/0, batch.inputs, batch.targets));
  TROUPE_ASSIGN_OR_RETURN(batch.inputs,
                          InDType(batch.inputs, spec.dtype, kernels));
  TROUPE_ASSIGN_OR_RETURN(batch.targets,
                          InDType(batch.targets, spec.dtype, kernels));
  return batch;
}

}  // namespace

absl::StatusOr<double> SavedActivationMiB(const actors::JobSpec& spec) {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<nn::Kernels> kernels,
                          actors::OpenRankKernels(spec, /*local_rank=*/0));
  const std::unique_ptr<nn::Module> model = spec.model();
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<nn::ParameterArena> arena,
                          nn::ParameterArena::Create({model->Parameters()}, {},
                                                     kernels->allocator()));
  TROUPE_RETURN_IF_ERROR(arena->Initialize(spec.seed));
  TROUPE_RETURN_IF_ERROR(nn::BindBuffers(model->Buffers(), *kernels));
  TROUPE_ASSIGN_OR_RETURN(const Batch batch, LoadBatch(spec, *kernels));
  arena->BeginStep();

  const auto bytes = [&] {
    return static_cast<double>(kernels->allocator().stats().bytes_in_use);
  };
  const auto forward = [&]() -> absl::StatusOr<double> {
    const double before = bytes();
    nn::Tape tape;
    nn::Context ctx(*kernels, &tape);
    ctx.set_random({spec.seed, /*step=*/0, /*sample=*/0});
    const nn::Tensor loss =
        spec.loss(ctx, (*model)(ctx, batch.inputs), batch.targets);
    if (!ctx.ok()) return ctx.status();
    return (bytes() - before) / (1 << 20);
  };
  // The first forward allocates the memory that kernels keep between calls.
  TROUPE_RETURN_IF_ERROR(forward().status());
  return forward();
}

}  // namespace troupe::bench
