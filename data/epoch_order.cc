#include "data/epoch_order.h"

#include <numeric>

#include "base/check.h"
#include "nn/random/philox.h"

namespace troupe::data {

void EpochOrder(std::int64_t dataset_size, std::uint64_t seed,
                std::int64_t epoch, bool shuffle,
                std::vector<std::int64_t>& order) {
  TROUPE_CHECK(dataset_size >= 0, "a dataset has a number of samples");
  TROUPE_CHECK(0 <= epoch && epoch <= INT64_C(0xffffffff),
               "an epoch fits the random counter");
  order.resize(dataset_size);
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (!shuffle) return;
  nn::RandomPosition position;
  position.step = static_cast<std::uint32_t>(epoch);
  position.path = nn::HashName("data.epoch_order");
  nn::RandomStream draws(nn::RandomKey(seed, nn::Purpose::kShuffle), position);
  draws.Shuffle(order.begin(), order.end());
}

}  // namespace troupe::data
