#include "tests/actors/sim/small_job.h"

#include <memory>
#include <utility>

#include "data/in_memory_dataset.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "nn/random/philox.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kIn = 4, kOut = 2;
constexpr std::int64_t kSamples = 3 * kSmallJobBatch;
// Number of counted samples in a global batch of 24: those whose number is not
// 2 modulo 3.
constexpr double kCounted = 16;

// Returns samples of small integers. Those with an even first target count.
data::DatasetPtr SmallDataset() {
  nn::CachingAllocator allocator;
  nn::Tensor inputs =
      nn::Tensor::Empty({kSamples, kIn}, nn::DType::kF32, allocator);
  nn::Tensor targets =
      nn::Tensor::Empty({kSamples, kOut}, nn::DType::kF32, allocator);
  nn::RandomStream draws(nn::RandomKey(7, nn::Purpose::kTest), {});
  for (float& x : inputs.span<float>()) {
    x = static_cast<float>(draws.Below(3)) - 1;
  }
  for (std::int64_t i = 0; i < kSamples; ++i) {
    float* target = targets.data<float>() + i * kOut;
    target[0] = i % 3 == 2 ? 1 : 2 * (static_cast<float>(draws.Below(3)) - 1);
    target[1] = static_cast<float>(draws.Below(5)) - 2;
  }
  return *data::MakeInMemoryDataset(inputs, targets, /*num_classes=*/0);
}

// Returns the squared error, whose count is the number of samples with an even
// first target.
nn::Tensor CountedLoss(nn::Context& ctx, const nn::Tensor& output,
                       const nn::Tensor& target) {
  nn::Tensor stats = nn::ops::MeanSquaredError(ctx, output, target);
  if (!ctx.ok() || ctx.shape_only()) return stats;
  double count = 0;
  for (std::int64_t i = 0; i < target.dim(0); ++i) {
    const double first = target.dtype() == nn::DType::kF64
                             ? target.data<double>()[i * kOut]
                             : target.data<float>()[i * kOut];
    count += first != 1;
  }
  stats.data<double>()[nn::ops::kLossCount] = count;
  return stats;
}

// A linear layer whose initial weights are -1, 0 or 1 when `integers`.
class SmallLinear : public nn::Linear {
 public:
  SmallLinear(std::int64_t in, std::int64_t out, const Options& options,
              bool integers)
      : nn::Linear(in, out, options) {
    if (!integers) return;
    for (nn::Parameter* parameter : Parameters()) {
      parameter->init = nn::Initializer::Constant(0);
    }
    Parameters()[0]->init = nn::Initializer::Integers(-1, 1);
  }
};

}  // namespace

JobSpec SmallJob(const SmallJobOptions& options) {
  const bool exact = options.numbers == Numbers::kExact;
  JobSpec spec;
  spec.dtype = exact ? nn::DType::kF64 : nn::DType::kF32;
  const nn::Linear::Options linear = {/*bias=*/true, spec.dtype};
  spec.model = [linear, exact, width = options.width, cut = options.pieces] {
    auto model = std::make_unique<nn::Sequential>();
    auto& first = model->Append<SmallLinear>(kIn, width, linear, exact);
    model->Append<nn::ReLU>();
    auto& second = model->Append<SmallLinear>(width, width, linear, exact);
    if (cut) {
      first.set_parallel(nn::Linear::kColumn);
      second.set_parallel(nn::Linear::kRow);
    }
    model->Append<nn::ReLU>();
    auto& last = model->Append<SmallLinear>(width, kOut, linear, exact);
    if (cut) last.set_parallel(nn::Linear::kVocabulary);
    return model;
  };
  spec.loss = CountedLoss;
  // 2^-6 per counted sample when exact.
  const double lr = exact ? kCounted / 64 : 0.05;
  spec.optimizer = [lr, momentum = options.momentum] {
    nn::SgdOptions sgd;
    sgd.lr = lr;
    sgd.momentum = momentum;
    return std::make_unique<nn::Sgd>(sgd);
  };
  if (exact) {
    spec.kernels = [] { return nn::CreateReferenceKernels(); };
  } else {
    spec.kernels = [] {
      nn::CpuKernelOptions cpu;
      cpu.onednn = false;  // quick to create
      return nn::CreateCpuKernels(cpu);
    };
  }
  static const data::DatasetPtr* const dataset =
      new data::DatasetPtr(SmallDataset());
  spec.train = *dataset;
  spec.shuffle = false;
  spec.seed = 3;
  spec.steps = options.steps;
  spec.timeout = absl::Seconds(60);
  spec.plan.mesh = pipeline::Mesh(options.ranks);
  spec.plan.global_batch_size = kSmallJobBatch;
  spec.plan.micro_batch_size = options.ranks % 3 == 0 ? 4 : 3;
  spec.plan.inline_bytes = options.fused ? 1 << 30 : 0;
  spec.plan.buckets.first_bucket_bytes = 1;  // a bucket per parameter
  spec.plan.buckets.bucket_bytes = 300;      // or two
  return spec;
}

std::unique_ptr<nn::Module> MakeFourLayers() {
  const nn::Linear::Options f64 = {/*bias=*/true, nn::DType::kF64};
  auto model = std::make_unique<nn::Sequential>();
  for (int layer = 0; layer < 4; ++layer) {
    model->Append<nn::Linear>(kIn, layer == 3 ? kOut : kIn, f64);
    model->Append<nn::ReLU>();
  }
  return model;
}

}  // namespace troupe::actors
