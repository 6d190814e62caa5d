#include "actors/planning/reduction_costs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "base/cpu_cores.h"
#include "comm/local/local_group.h"
#include "nn/tensor/caching_allocator.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kSmall = 256, kLarge = std::int64_t{1} << 20;  // floats
constexpr int kRounds = 5;

// Returns the seconds of the fastest of several all-reduces of `count` floats
// by all ranks of `group`.
double MeasureAllReduce(comm::Group& group, std::int64_t count) {
  std::vector<double> best(group.size(),
                           std::numeric_limits<double>::infinity());
  const auto run = [&](std::size_t rank) {
    nn::CachingAllocator allocator;
    const nn::Tensor range =
        nn::Tensor::Zeros({count}, nn::DType::kF32, allocator);
    for (int round = 0; round < kRounds; ++round) {
      const absl::Time begin = absl::Now();
      const absl::Status status = group[rank]->RunInline(
          comm::AllReduce(comm::ReduceOp::kSum, range), absl::Seconds(60));
      TROUPE_CHECK(status.ok(), "ranks of this process add up zeros");
      best[rank] =
          std::min(best[rank], absl::ToDoubleSeconds(absl::Now() - begin));
    }
  };
  std::vector<std::thread> others;
  for (std::size_t rank = 1; rank < group.size(); ++rank) {
    others.emplace_back(run, rank);
  }
  run(0);
  for (std::thread& other : others) other.join();
  return *std::max_element(best.begin(), best.end());
}

}  // namespace

double BytesSent(double bytes, int ranks) {
  return ranks > 1 ? 2 * bytes * (ranks - 1) / ranks : 0;
}

double ReductionCosts::SecondsOf(double bytes, int ranks) const {
  if (ranks <= 1) return 0;
  return latency + BytesSent(bytes, ranks) / bytes_per_second;
}

ReductionCosts MeasureReductionCosts(int ranks) {
  const int threads = std::max(2, std::min(ranks, base::AvailableCores()));
  comm::Group group = comm::MakeLocalGroup({threads});
  ReductionCosts costs;
  costs.latency = MeasureAllReduce(group, kSmall);
  const double seconds =
      std::max(MeasureAllReduce(group, kLarge) - costs.latency, 1e-9);
  costs.bytes_per_second =
      BytesSent(sizeof(float) * static_cast<double>(kLarge), threads) / seconds;
  return costs;
}

ReductionCosts LinkCosts(int ranks, double bandwidth) {
  constexpr double kNetworkLatency = 50e-6;
  if (bandwidth > 0) return {kNetworkLatency, bandwidth};
  return MeasureReductionCosts(ranks);
}

}  // namespace troupe::actors
