#include "wide_and_deep.h"

#include <memory>

#include "base/check.h"
#include "data/synthetic/synthetic.h"
#include "nn/ops/add.h"
#include "nn/ops/loss.h"
#include "nn/ops/relu.h"
#include "nn/optim/sgd.h"

namespace outside {

using namespace troupe;  // An example may be short.

// Adding a module declares its parameters; Troupe allocates their memory later.
WideAndDeep::WideAndDeep(std::int64_t inputs, std::int64_t hidden,
                         std::int64_t outputs)
    : wide_(Add<nn::Linear>("wide", inputs, outputs)),
      deep_in_(Add<nn::Linear>("deep_in", inputs, hidden)),
      deep_out_(Add<nn::Linear>("deep_out", hidden, outputs)) {}

nn::Tensor WideAndDeep::Forward(nn::Context& ctx, const nn::Tensor& x) {
  const nn::Tensor deep = deep_out_(ctx, nn::ops::Relu(ctx, deep_in_(ctx, x)));
  return nn::ops::Add(ctx, wide_(ctx, x), deep);
}

absl::StatusOr<actors::JobSpec> MakeJob(int ranks) {
  data::SyntheticOptions data;
  data.input_shape = {20};
  data.count = 4096;
  actors::JobSpec spec;
  TROUPE_ASSIGN_OR_RETURN(spec.train,
                          data::MakeSyntheticDataset(data, "train"));
  data.count = 512;
  TROUPE_ASSIGN_OR_RETURN(spec.test, data::MakeSyntheticDataset(data, "test"));
  spec.model = [] { return std::make_unique<WideAndDeep>(20, 64, 10); };
  spec.loss = nn::ops::CrossEntropyLoss();
  spec.optimizer = nn::SgdOptions{/*lr=*/0.05, /*momentum=*/0.9};
  spec.plan.mesh = pipeline::Mesh(ranks);
  spec.plan.global_batch_size = 64;
  spec.steps = 400;
  return spec;
}

}  // namespace outside
