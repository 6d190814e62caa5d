// Defines a custom module and trains it on two ranks.
//
//   bazel run //examples/02_custom_model
//
// Fails if the test accuracy is not above 85 %.

#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "actors/job.h"
#include "base/check.h"
#include "data/synthetic/synthetic.h"
#include "nn/modules/linear.h"
#include "nn/modules/module.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "nn/ops/add.h"
#include "nn/ops/loss.h"
#include "nn/ops/relu.h"
#include "nn/optim/sgd.h"

namespace {

using namespace troupe;  // An example may be short.

// y = x + W2 relu(W1 x): two layers with a skip connection (He et al.
// 2016, arXiv:1603.05027, sec. 3). Adding a module declares its parameters. Ops
// return no errors: the context keeps the first one.
class ResidualBlock : public nn::Module {
 public:
  explicit ResidualBlock(std::int64_t width)
      : first_(Add<nn::Linear>("first", width, width)),
        second_(Add<nn::Linear>("second", width, width)) {}

  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    return nn::ops::Add(ctx, x,
                        second_(ctx, nn::ops::Relu(ctx, first_(ctx, x))));
  }

 private:
  nn::Linear& first_;
  nn::Linear& second_;
};

// Called once per rank, since ranks share no model.
std::unique_ptr<nn::Module> MakeModel() {
  auto model = std::make_unique<nn::Sequential>();
  model->Append<nn::Linear>(20, 64);
  model->Append<ResidualBlock>(64);
  model->Append<nn::ReLU>();
  model->Append<nn::Linear>(64, 10);
  return model;
}

class PrintLoss : public actors::JobObserver {
 public:
  void OnStart(const actors::JobInfo& info) override {
    std::printf("%s", info.plan.ToString().c_str());
  }
  void OnSteps(absl::Span<const actors::StepReport> steps) override {
    for (const actors::StepReport& s : steps) {
      if (s.step % 100 == 0) {
        std::printf("step %d: loss %.4f\n", static_cast<int>(s.step), s.loss);
      }
    }
  }
};

absl::Status Run() {
  data::SyntheticOptions data;
  data.count = 4096;
  data.input_shape = {20};
  actors::JobSpec spec;
  TROUPE_ASSIGN_OR_RETURN(spec.train,
                          data::MakeSyntheticDataset(data, "train"));
  data.count = 512;
  TROUPE_ASSIGN_OR_RETURN(spec.test, data::MakeSyntheticDataset(data, "test"));
  spec.model = MakeModel;
  spec.loss = nn::ops::CrossEntropyLoss();
  spec.optimizer = nn::SgdOptions{/*lr=*/0.05, /*momentum=*/0.9};
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2);
  spec.plan.global_batch_size = 64;
  spec.steps = 600;

  PrintLoss observer;
  TROUPE_ASSIGN_OR_RETURN(const actors::JobResult result,
                          actors::RunJob(spec, &observer));
  std::printf("test accuracy %.3f\n", result.evaluation.accuracy);
  if (!(result.evaluation.accuracy > 0.85)) {
    return absl::InternalError("the accuracy is not above 85 %");
  }
  return absl::OkStatus();
}

}  // namespace

int main() {
  const absl::Status status = Run();
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  }
  return status.ok() ? 0 : 1;
}
