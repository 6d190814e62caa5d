#include "troupe/optimizer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_error.h"
#include "troupe/model_core.h"

namespace troupe {

Optimizer::Optimizer(const Trainable& model,
                     std::function<std::unique_ptr<nn::Optimizer>()> make)
    : model_(model), rule_(make()) {
  model_.core().Attach(make);
}

void Optimizer::ZeroGrad() { base::OrThrow(model_.core().engine().ZeroGrad()); }

void Optimizer::Step(CallPlace place) {
  Rank& rank = model_.rank();
  const actors::CallNote::Scope call(rank.strand().call(), "Step", place);
  const absl::Status status = model_.core().engine().Step();
  if (!status.ok()) {
    throw base::StatusError(absl::Status(
        status.code(),
        absl::StrCat(actors::CallText("Step", place), ": ", status.message())));
  }
  rank.BeginStep();
}

std::int64_t Optimizer::steps() const { return model_.core().engine().step(); }

}  // namespace troupe
