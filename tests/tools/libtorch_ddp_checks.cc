// Checks of examples/libtorch_ddp/gradient_reducer.h on two ranks, in threads:
// gradients that one rank lacks, gradients added up over two backwards, several
// buckets, and parameters that are refused. Gradients are small integers and
// halves, so equality is exact.

#include <torch/types.h>

#include <cstdio>
#include <stdexcept>
#include <string>

#include "absl/strings/match.h"
#include "gradient_reducer.h"
#include "troupe/troupe.h"

namespace {

void Expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("not so: " + what);
}

bool IsFilledWith(const at::Tensor& tensor, double value) {
  return tensor.defined() && tensor.eq(value).all().item<bool>();
}

at::Tensor Parameter(std::int64_t size, at::ScalarType dtype = at::kFloat) {
  return torch::ones({size}, at::TensorOptions(dtype).requires_grad(true));
}

void ChecksMeans(troupe::Rank& rank) {
  GradientReducer::Parameters parameters;
  const at::Tensor used = parameters.insert("used", Parameter(1000));
  const at::Tensor first = parameters.insert("of rank 0", Parameter(3));
  const at::Tensor frozen =
      parameters.insert("frozen", Parameter(2).requires_grad_(false));
  ReducerOptions options;
  options.first_bucket_mb = options.bucket_cap_mb = 1e-4;
  GradientReducer reducer(rank, parameters, options);
  Expect(reducer.buckets() == 2, "two buckets of 100 bytes or a parameter");

  const double mine = rank.number() + 1;
  const auto backward = [&](bool all) {
    at::Tensor loss = (mine * used).sum() + frozen.sum();
    if (all && rank.number() == 0) loss = loss + 4 * first.sum();
    loss.backward();
  };
  backward(/*all=*/true);
  Expect(IsFilledWith(used.grad(), 1.5), "the mean of 1 and 2 is 1.5");
  Expect(IsFilledWith(first.grad(), 2), "rank 1 counts as zeros");
  Expect(!frozen.grad().defined(), "a frozen parameter has no gradient");
  backward(/*all=*/false);
  Expect(IsFilledWith(used.grad(), 3), "gradients add up");
  Expect(IsFilledWith(first.grad(), 2), "an unused one keeps its gradient");
  used.mutable_grad() = at::Tensor();  // zero_grad()
  first.mutable_grad() = at::Tensor();
  backward(/*all=*/true);
  Expect(IsFilledWith(used.grad(), 1.5), "zero_grad() begins anew");
  used.mutable_grad() = at::Tensor();  // The reducer ends without it.
}

void ChecksRefusal(troupe::Rank& rank) {
  GradientReducer::Parameters parameters;
  parameters.insert("a", Parameter(2));
  parameters.insert("b", Parameter(2, at::kDouble));
  const absl::Status refused =
      troupe::Try([&] { GradientReducer(rank, parameters, {}); });
  Expect(absl::StrContains(refused.message(), "parameter b must be"),
         std::string(refused.message()));
}

void Run(troupe::Rank& rank) {
  ChecksMeans(rank);
  ChecksRefusal(rank);
  rank.Log("all checks hold\n");
}

}  // namespace

int main() { return troupe::ExitCode(troupe::Spawn(Run, /*ranks=*/2)); }
