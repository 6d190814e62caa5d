// A minimal synchronised norm: subtracts from each feature its mean over all
// samples of all ranks along an axis, and likewise the mean of the gradient. It
// all-reduces in forward and in backward, or reduce-scatters and gathers, to
// the same bits.
//
//   model->Append<SyncedCenter>();          // [B, D] f64 -> [B, D]

#ifndef TESTS_ACTORS_ENGINE_SYNCED_CENTER_H_
#define TESTS_ACTORS_ENGINE_SYNCED_CENTER_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "nn/modules/module.h"

namespace troupe::actors {

class SyncedCenter : public nn::Module {
 public:
  enum class Way { kAllReduce, kScatterAndGather };
  // `before_reduce`, if set, is called by each forward and backward.
  explicit SyncedCenter(std::function<absl::Status()> before_reduce = nullptr,
                        std::string axis = "dp", Way way = Way::kAllReduce)
      : before_reduce_(std::move(before_reduce)),
        axis_(std::move(axis)),
        way_(way) {}

  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override;

 private:
  const std::function<absl::Status()> before_reduce_;
  const std::string axis_;
  const Way way_;
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_ENGINE_SYNCED_CENTER_H_
