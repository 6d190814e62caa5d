// After a few steps, a job allocates no further memory from the system for its
// ranks' tensors, and makes no further oneDNN objects: it reuses those of the
// first steps. Both are counted at their source: in the allocator's memory, and
// in wrappers of the library's functions.

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "actors/job.h"
#include "base/cpu_isa.h"
#include "data/in_memory_dataset.h"
#include "data/registry.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/models/gpt2.h"
#include "nn/models/resnet.h"
#include "nn/modules/parameter_dtype.h"
#include "nn/ops/loss.h"
#include "nn/optim/adam.h"
#include "oneapi/dnnl/dnnl.h"
#include "tests/actors/test_job.h"
#include "tests/nn/testing/limited_memory.h"

namespace {

std::atomic<std::int64_t> onednn_objects{0};

// Returns the library's function `name`, which this file wraps.
template <typename Function>
Function* Real(Function* /*in_front*/, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// Wrappers of all functions with which kernels make objects. Descriptions of
// memory are plain structs.

extern "C" dnnl_status_t dnnl_engine_create(dnnl_engine_t* engine,
                                            dnnl_engine_kind_t kind,
                                            std::size_t index) {
  static auto* const real = Real(&dnnl_engine_create, __func__);
  ++onednn_objects;
  return real(engine, kind, index);
}

extern "C" dnnl_status_t dnnl_stream_create(dnnl_stream_t* stream,
                                            dnnl_engine_t engine,
                                            unsigned flags) {
  static auto* const real = Real(&dnnl_stream_create, __func__);
  ++onednn_objects;
  return real(stream, engine, flags);
}

extern "C" dnnl_status_t dnnl_memory_create(dnnl_memory_t* memory,
                                            const dnnl_memory_desc_t* desc,
                                            dnnl_engine_t engine,
                                            void* handle) {
  static auto* const real = Real(&dnnl_memory_create, __func__);
  ++onednn_objects;
  return real(memory, desc, engine, handle);
}

extern "C" dnnl_status_t dnnl_primitive_attr_create(
    dnnl_primitive_attr_t* attr) {
  static auto* const real = Real(&dnnl_primitive_attr_create, __func__);
  ++onednn_objects;
  return real(attr);
}

extern "C" dnnl_status_t dnnl_primitive_desc_iterator_create(
    dnnl_primitive_desc_iterator_t* iterator, const_dnnl_op_desc_t op,
    const_dnnl_primitive_attr_t attr, dnnl_engine_t engine,
    const_dnnl_primitive_desc_t hint) {
  static auto* const real =
      Real(&dnnl_primitive_desc_iterator_create, __func__);
  ++onednn_objects;
  return real(iterator, op, attr, engine, hint);
}

extern "C" dnnl_status_t dnnl_reorder_primitive_desc_create(
    dnnl_primitive_desc_t* desc, const dnnl_memory_desc_t* from,
    dnnl_engine_t from_engine, const dnnl_memory_desc_t* to,
    dnnl_engine_t to_engine, const_dnnl_primitive_attr_t attr) {
  static auto* const real = Real(&dnnl_reorder_primitive_desc_create, __func__);
  ++onednn_objects;
  return real(desc, from, from_engine, to, to_engine, attr);
}

extern "C" dnnl_status_t dnnl_primitive_create(
    dnnl_primitive_t* primitive, const_dnnl_primitive_desc_t desc) {
  static auto* const real = Real(&dnnl_primitive_create, __func__);
  ++onednn_objects;
  return real(primitive, desc);
}

namespace troupe::actors {
namespace {

constexpr int kRanks = 2, kSteps = 12;
// Number of steps, counted by their losses, before counting begins. Ranks are
// at most a step apart, so that each has run at least three.
constexpr int kWarmUpSteps = 4;

JobSpec LeNet() { return TinyCnnJob(kRanks, kSteps); }

// Returns a ResNet with several buckets; oneDNN computes its layers of 16
// channels and more.
JobSpec ResNet(nn::DType dtype) {
  JobSpec spec = LeNet();
  spec.dtype = dtype;
  data::DatasetOptions data;
  data.kind = "synthetic";
  data.input_shape = {16, 16, 3};
  data.train_count = 64;
  data.test_count = 0;
  spec.train = data::OpenDataset(data)->train;
  spec.model = [dtype] {
    nn::ResNetOptions options;
    options.num_classes = 10;
    options.stem = nn::ResNetStem::kCifar;
    options.width = 16;
    auto model = *nn::MakeResNet(18, options);
    nn::SetParameterDType(*model, dtype);
    return model;
  };
  spec.plan.global_batch_size = 16;
  return spec;
}

data::DatasetPtr Tokens(std::int64_t samples, std::int64_t length,
                        std::int64_t vocabulary) {
  nn::CachingAllocator memory;
  const nn::Shape shape = {samples, length};
  nn::Tensor tokens = nn::Tensor::Empty(shape, nn::DType::kI64, memory);
  for (std::int64_t i = 0; i < tokens.numel(); ++i) {
    tokens.data<std::int64_t>()[i] = i * i % vocabulary;
  }
  return *data::MakeInMemoryDataset(tokens, tokens, vocabulary);
}

JobSpec Gpt(nn::DType dtype) {
  JobSpec spec = LeNet();
  spec.train = Tokens(/*samples=*/64, /*length=*/16, /*vocabulary=*/17);
  spec.dtype = dtype;
  spec.model = [dtype] {
    nn::Gpt2Options options;
    options.layers = 2;
    options.heads = 2;
    options.width = 32;
    options.context = 16;
    options.vocab_size = 17;
    auto model = *nn::MakeGpt2(options);
    nn::SetParameterDType(*model, dtype);
    return model;
  };
  spec.optimizer = [dtype] {
    nn::AdamOptions adam = nn::AdamWDefaults();
    adam.common.f32_master = dtype == nn::DType::kBF16;
    adam.common.clip_grad_norm = 1;
    return std::make_unique<nn::Adam>(adam);
  };
  return spec;
}

JobSpec Accumulating(JobSpec spec) {
  spec.plan.micro_batch_size = spec.plan.global_batch_size / kRanks / 4;
  return spec;
}

JobSpec InOneBucket(JobSpec spec) {
  spec.plan.buckets.first_bucket_bytes = std::int64_t{1} << 30;
  return spec;
}

JobSpec Launched(JobSpec spec) {
  spec.plan.inline_bytes = 0;
  return spec;
}

struct Case {
  std::string name;
  JobSpec spec;
  bool uses_onednn;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.name;
}

std::vector<Case> Cases() {
  constexpr auto kF32 = nn::DType::kF32, kBF16 = nn::DType::kBF16;
  return {
      {"LeNet", LeNet(), false},
      {"LeNetLaunched", Launched(LeNet()), false},
      {"ResNet", ResNet(kF32), true},
      {"ResNetAccumulating", Accumulating(ResNet(kF32)), true},
      {"ResNetInBF16", ResNet(kBF16), true},
      {"ResNetInOneBucket", InOneBucket(ResNet(kF32)), true},
      {"ResNetInBF16InOneBucket", InOneBucket(ResNet(kBF16)), true},
      {"Gpt", Gpt(kF32), false},
      {"GptAccumulating", Accumulating(Gpt(kF32)), false},
      {"GptInBF16", Gpt(kBF16), base::CpuMultipliesBF16Tiles()},
      {"GptInBF16Launched", Launched(Accumulating(Gpt(kBF16))),
       base::CpuMultipliesBF16Tiles()},
  };
}

// Returns the limit on blocks that ranks may still allocate. Gradients of one
// micro-batch have memory until their update (nn/arena/parameter_arena.h); for
// how many buckets at a time depends on the speed of the peers.
std::int64_t BlocksLeftMax(const pipeline::Plan& plan) {
  const auto buckets = static_cast<std::int64_t>(plan.stages[0].buckets.size());
  return plan.micro_batches > 1 || buckets == 1 ? 0 : kRanks * buckets;
}

class SteadyStateTest : public testing::TestWithParam<Case> {};

TEST_P(SteadyStateTest, AsksForNoMemoryAndMakesNoObject) {
  JobSpec spec = GetParam().spec;
  spec.test = nullptr;  // an evaluation has other shapes
  auto memory = std::make_shared<nn::LimitedMemory>();
  spec.kernels = [memory]() -> absl::StatusOr<std::unique_ptr<nn::Kernels>> {
    nn::CpuKernelOptions options;
    options.memory = memory;
    return nn::CreateCpuKernels(options);
  };
  const std::int64_t micro_batches =
      spec.plan.micro_batch_size == 0
          ? kRanks
          : spec.plan.global_batch_size / spec.plan.micro_batch_size;
  std::atomic<std::int64_t> losses{0}, blocks{0}, objects{0};
  spec.loss = [&, loss = spec.loss](nn::Context& ctx, const nn::Tensor& y,
                                    const nn::Tensor& t) {
    if (losses++ == kWarmUpSteps * micro_batches) {
      blocks = memory->blocks();
      objects = onednn_objects.load();
    }
    return loss(ctx, y, t);
  };
  onednn_objects = 0;
  const Reports reports = ReportsOf(spec);
  ASSERT_EQ(reports.steps.size(), std::size_t{kSteps});
  EXPECT_EQ(losses, kSteps * micro_batches);
  EXPECT_GT(blocks, 10);
  EXPECT_GE(memory->blocks(), blocks);
  EXPECT_LE(memory->blocks(), blocks + BlocksLeftMax(reports.info.plan));
  EXPECT_EQ(onednn_objects > 0, GetParam().uses_onednn);
  EXPECT_EQ(onednn_objects, objects);
}

INSTANTIATE_TEST_SUITE_P(All, SteadyStateTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace troupe::actors
