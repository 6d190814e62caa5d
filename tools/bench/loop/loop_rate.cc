#include "tools/bench/loop/loop_rate.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/status_error.h"
#include "tools/bench/report.h"
#include "troupe/troupe.h"

namespace troupe::bench {
namespace {

constexpr int kBlocks = 10;

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Cuts the steps of all ranks into blocks of the lengths that rank 0 chooses,
// and times them.
class BlockTimer {
 public:
  BlockTimer(Rank& rank, double seconds)
      : rank_(rank), seconds_(seconds), block_begin_(Now()) {}

  // Is called after each step. Returns whether there are more.
  bool More() {
    if (++done_ < block_) return true;
    const double now = Now();
    const double took = now - block_begin_;
    if (begin_ == 0) {  // the first step
      begin_ = now + seconds_ / 4;
    } else if (now < begin_) {
      const double step = took / static_cast<double>(block_);
      block_ = std::max<std::int64_t>(
          1, static_cast<std::int64_t>(seconds_ / kBlocks / step));
    } else if (warm_) {
      rates_.push_back(static_cast<double>(block_) / took);
      if (rates_.size() == kBlocks) block_ = 0;
    } else {
      warm_ = true;
    }
    Var agreed = rank_.Full({1}, static_cast<double>(block_), DType::kI64);
    Broadcast(agreed, /*root=*/0);
    block_ = agreed.tensor().data<std::int64_t>()[0];
    done_ = 0;
    block_begin_ = Now();
    return block_ > 0;
  }

  double MedianRate() const { return Median(rates_); }

 private:
  Rank& rank_;
  const double seconds_;
  double begin_ = 0;  // end of the warm-up; 0: not known yet
  bool warm_ = false;
  double block_begin_;
  std::int64_t block_ = 1, done_ = 0;  // steps
  std::vector<double> rates_;
};

}  // namespace

absl::StatusOr<double> LoopStepsPerSecond(const actors::JobSpec& spec,
                                          const LoopOptions& options) {
  SpawnOptions spawn;
  spawn.ranks = options.ranks;
  spawn.seed = spec.seed;
  double rate = 0;
  const auto train = [&](Rank& rank) {
    auto model = rank.Place(spec.model());
    DDP ddp(model);
    Optimizer optimizer(
        ddp, [&] { return base::OrThrow(actors::MakeOptimizer(spec)); });
    if (options.step_in_backward) ddp.StepInBackward(optimizer);
    DataLoaderOptions loading{spec.plan.global_batch_size / options.ranks,
                              /*shuffle=*/true, /*drop_last=*/true};
    loading.workers = 1;
    DataLoader loader(rank, spec.train, loading);
    BlockTimer timer(rank, options.seconds);
    for (bool more = true; more;) {
      for (auto [x, y] : loader) {
        optimizer.ZeroGrad();
        nn::CrossEntropy(ddp(x), y).Backward();
        optimizer.Step();
        more = timer.More();
        if (!more) break;
      }
    }
    if (rank.number() == 0) rate = timer.MedianRate();
  };
  TROUPE_RETURN_IF_ERROR(Spawn(train, spawn));
  return rate;
}

}  // namespace troupe::bench
