#include "nn/optim/parameter_sums.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace troupe::nn {

absl::StatusOr<Tensor> ParameterSums::Begin(Kernels& kernels,
                                            const ParameterArena& arena,
                                            int bucket) {
  const std::vector<ArenaSlot>& slots = arena.slots();
  buckets_.resize(arena.num_buckets());
  slots_.resize(slots.size());
  Tensor& sums = buckets_[bucket];
  if (!sums.defined()) {
    const std::int64_t count = std::count_if(
        slots.begin(), slots.end(),
        [&](const ArenaSlot& slot) { return slot.bucket == bucket; });
    TROUPE_ASSIGN_OR_RETURN(
        sums, Tensor::Create({2 * count}, DType::kF64, kernels.allocator()));
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].bucket != bucket) continue;
      slots_[i].squares = sums.FlatView(begin, {2});
      begin += 2;
    }
  }
  TROUPE_RETURN_IF_ERROR(kernels.Fill(0, sums));
  return sums;
}

ParameterSums::Of& ParameterSums::At(const ParameterArena& arena,
                                     const ArenaSlot& slot) {
  const auto i = static_cast<std::size_t>(&slot - arena.slots().data());
  TROUPE_CHECK(i < slots_.size() && slots_[i].squares.defined(),
               "sums over a bucket's parameters begin before their use");
  return slots_[i];
}

}  // namespace troupe::nn
