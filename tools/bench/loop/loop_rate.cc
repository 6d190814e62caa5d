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

class TimedLoop {
 public:
  TimedLoop(const actors::JobSpec& spec, LoopKind kind, int threads,
            double seconds)
      : spec_(spec), kind_(kind), threads_(threads), seconds_(seconds) {}

  // Returns the median rate.
  double Run(Rank& rank) {
    if (kind_ == LoopKind::kDataParallel) {
      DataParallel model(rank, [this] { return spec_.model(); });
      Optimizer optimizer = OptimizerOf(model);
      return Steps(rank, model, optimizer);
    }
    auto model = rank.Place(spec_.model());
    DDP ddp(model);
    Optimizer optimizer = OptimizerOf(ddp);
    if (kind_ == LoopKind::kDdpStepInBackward) ddp.StepInBackward(optimizer);
    return Steps(rank, ddp, optimizer);
  }

 private:
  template <typename M>
  Optimizer OptimizerOf(M& model) {
    return Optimizer(
        model, [this] { return base::OrThrow(actors::MakeOptimizer(spec_)); });
  }

  // The readers of all ranks together are as many as those of the job.
  template <typename M>
  double Steps(Rank& rank, M& model, Optimizer& optimizer) {
    DataLoaderOptions loading{
        spec_.plan.global_batch_size / rank.world().size(),
        /*shuffle=*/true, /*drop_last=*/true};
    loading.workers = threads_ / rank.world().size();
    DataLoader loader(rank, spec_.train, loading);
    BlockTimer timer(rank, seconds_);
    for (bool more = true; more;) {
      for (auto [x, y] : loader) {
        optimizer.ZeroGrad();
        nn::CrossEntropy(model(x), y).Backward();
        optimizer.Step();
        more = timer.More();
        if (!more) break;
      }
    }
    return timer.MedianRate();
  }

  const actors::JobSpec& spec_;
  const LoopKind kind_;
  const int threads_;
  const double seconds_;
};

}  // namespace

absl::StatusOr<double> LoopStepsPerSecond(const actors::JobSpec& spec,
                                          LoopKind kind, int ranks,
                                          double seconds) {
  SpawnOptions spawn;
  (kind == LoopKind::kDataParallel ? spawn.devices : spawn.ranks) = ranks;
  spawn.seed = spec.seed;
  double rate = 0;
  const auto train = [&](Rank& rank) {
    const double of_rank = TimedLoop(spec, kind, ranks, seconds).Run(rank);
    if (rank.number() == 0) rate = of_rank;
  };
  TROUPE_RETURN_IF_ERROR(Spawn(train, spawn));
  return rate;
}

}  // namespace troupe::bench
