#include "actors/chunks/use_marks.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/queued/queued_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/linear.h"
#include "pipeline/parameter_plan.h"

namespace troupe::actors {
namespace {

// Three layers, of which the first is frozen, in two buckets.
class Layers : public nn::Module {
 public:
  Layers() {
    Add<nn::Linear>("frozen", 2, 1);
    Add<nn::Linear>("one", 2, 1);
    Add<nn::Linear>("two", 2, 1);
    for (nn::Parameter* parameter : Parameters()) {
      parameter->requires_grad = parameter->name[0] != 'f';
    }
  }
  nn::Tensor Forward(nn::Context&, const nn::Tensor& x) override { return x; }
};

// One rank's parameters and marks.
struct Marked {
  explicit Marked(std::shared_ptr<nn::Kernels> its_kernels)
      : kernels(std::move(its_kernels)) {
    pipeline::ParameterPlanOptions options;
    options.buckets = {/*first_bucket_bytes=*/12, /*bucket_bytes=*/12};
    const pipeline::Plan made =
        pipeline::MakeParameterPlan(options, module.Parameters(),
                                    kernels->device())
            .value();
    plan = made;
    ChunkParameters::Setup setup;
    setup.plan = &plan;
    setup.kernels = kernels;
    setup.keeps_grads = true;
    parameters = ChunkParameters::Create(setup, module).value();
    marks = UseMarks::Create(*parameters, *kernels).value();
    parameters->BeginStep();
  }
  // Ends a backward that has written the gradients of these parameters.
  void Write(const std::vector<std::string>& names) {
    for (nn::Parameter* parameter : module.Parameters()) {
      for (const std::string& name : names) {
        if (parameter->name != name) continue;
        parameter->grad_written = true;
        marks->CompleteGradient(*parameter);
      }
    }
    for (int k = 0; k < parameters->num_buckets(); ++k) {
      marks->CompleteBucket(k);
      EXPECT_TRUE(parameters->ZeroUnwritten(k).ok());
    }
  }
  int IndexOf(const std::string& name) {
    for (const nn::Parameter* parameter : module.Parameters()) {
      if (parameter->name == name) return parameter->index;
    }
    return -1;
  }
  std::string Unused() const {
    std::string names;
    for (const nn::Parameter* parameter : marks->Unused()) {
      absl::StrAppend(&names, parameter->name, " ");
    }
    return names;
  }

  std::shared_ptr<nn::Kernels> kernels;
  Layers module;
  pipeline::Plan plan;
  std::unique_ptr<ChunkParameters> parameters;
  std::unique_ptr<UseMarks> marks;
};

std::shared_ptr<nn::Kernels> Queued(std::uint64_t seed) {
  return nn::CreateQueuedKernels(
      nn::CreateReferenceKernels(),
      std::make_shared<nn::GuardedMemory>(std::size_t{1} << 20), seed);
}

TEST(UseMarksTest, AreThoseOfAllBackwardsSinceClear) {
  Marked rank(nn::CreateReferenceKernels());
  EXPECT_EQ(rank.Unused(), "two.bias two.weight one.bias one.weight ");
  rank.Write({"one.weight", "one.bias"});
  EXPECT_EQ(rank.Unused(), "two.bias two.weight ");
  // Zeros are no use, in the next backward neither.
  rank.Write({"one.weight"});
  EXPECT_EQ(rank.Unused(), "two.bias two.weight ");
  rank.Write({"two.weight"});
  EXPECT_EQ(rank.Unused(), "two.bias ");
  rank.parameters->BeginStep();
  rank.marks->Clear();
  rank.Write({"two.weight", "two.bias"});
  EXPECT_EQ(rank.Unused(), "one.bias one.weight ");
}

// On a device with queues, too, whose work waits as long as it may.
TEST(UseMarksTest, ASumHasWhatAnyRankHasUsed) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Marked rank(seed == 0 ? nn::CreateReferenceKernels() : Queued(seed));
    for (const bool again : {false, true}) {
      rank.parameters->BeginStep();
      rank.marks->Clear();
      rank.Write({again ? "two.weight" : "one.weight"});
      const nn::Tensor marks = rank.marks->Publish().value();
      EXPECT_EQ(marks.numel(), 6);
      // The sum with a rank that has used one parameter.
      nn::Tensor theirs = marks.FlatView(rank.IndexOf("two.bias"), {1});
      EXPECT_TRUE(rank.kernels->Fill(1, theirs).ok());
      rank.marks->NoteSummed(nn::Record(*rank.kernels, nn::Queue::kCompute));
      EXPECT_TRUE(rank.marks->TakeSum().ok());
      EXPECT_EQ(rank.Unused(),
                again ? "one.bias one.weight " : "two.weight one.bias ")
          << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace troupe::actors
