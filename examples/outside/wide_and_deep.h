// A "wide and deep" model, the sum of a linear layer and an MLP (Cheng et al.
// 2016, arXiv:1606.07792, sec. 3), and a job that trains it.
//
//   absl::StatusOr<troupe::actors::JobSpec> spec = MakeJob(/*ranks=*/2);
//   absl::StatusOr<troupe::actors::JobResult> result =
//       troupe::actors::RunJob(*spec);

#ifndef WIDE_AND_DEEP_H_
#define WIDE_AND_DEEP_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "actors/job.h"
#include "nn/modules/linear.h"
#include "nn/modules/module.h"

namespace outside {

// [N, inputs] -> [N, outputs]
class WideAndDeep : public troupe::nn::Module {
 public:
  WideAndDeep(std::int64_t inputs, std::int64_t hidden, std::int64_t outputs);

  troupe::nn::Tensor Forward(troupe::nn::Context& ctx,
                             const troupe::nn::Tensor& x) override;

 private:
  troupe::nn::Linear& wide_;
  troupe::nn::Linear& deep_in_;
  troupe::nn::Linear& deep_out_;
};

// Returns a job of 400 steps with 64 samples each, on synthetic points of ten
// classes.
//
// Errors: those of the data (data/synthetic/synthetic.h).
absl::StatusOr<troupe::actors::JobSpec> MakeJob(int ranks);

}  // namespace outside

#endif  // WIDE_AND_DEEP_H_
