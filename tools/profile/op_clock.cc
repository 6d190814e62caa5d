#include "tools/profile/op_clock.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"

namespace troupe::tools {
namespace {

std::int64_t SteadyNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A kernel set without kernels, for the names of all ops.
class Names final : public nn::Kernels {
 public:
  Names() : Kernels(nn::Device()) {}
  nn::Allocator& allocator() override { return allocator_; }
  std::string Describe() const override { return "names"; }

 private:
  nn::CachingAllocator allocator_;
};

}  // namespace

class OpClock::TimedKernels final : public nn::Kernels {
 public:
  TimedKernels(std::unique_ptr<nn::Kernels> inner, OpClock& clock)
      : Kernels(inner->device()), inner_(std::move(inner)) {
    std::size_t number = 0;
    ForEachOp([&](auto op) {
      Time(this->*op, (*inner_).*op, clock, clock.counters_[number++]);
    });
  }

  nn::Allocator& allocator() override { return inner_->allocator(); }
  nn::DeviceQueues* queues() override { return inner_->queues(); }
  std::int64_t LinearGradientRows(nn::DType dtype, std::int64_t n,
                                  std::int64_t k,
                                  std::int64_t m) const override {
    return inner_->LinearGradientRows(dtype, n, k, m);
  }
  std::string Describe() const override { return inner_->Describe(); }

 private:
  template <typename ThisOp>
  struct Timed {
    const ThisOp* inner;
    OpClock* clock;
    Counter* counter;
  };

  template <typename... Args>
  void Time(nn::Op<absl::Status(Args...)>& outer,
            const nn::Op<absl::Status(Args...)>& inner, OpClock& clock,
            Counter& counter) {
    using ThisOp = nn::Op<absl::Status(Args...)>;
    auto timed = std::make_shared<Timed<ThisOp>>(
        Timed<ThisOp>{&inner, &clock, &counter});
    outer.BindFunction(
        [](const ThisOp& op, Args... args) -> absl::Status {
          const auto& timed = op.template state<Timed<ThisOp>>();
          const std::int64_t begin = timed.clock->now_();
          absl::Status status = (*timed.inner)(args...);
          timed.clock->Count(*timed.counter, begin);
          return status;
        },
        timed.get());
    timed_.push_back(std::move(timed));
  }

  const std::unique_ptr<nn::Kernels> inner_;
  std::vector<std::shared_ptr<void>> timed_;
};

OpClock::OpClock() : OpClock(SteadyNanos) {}

OpClock::OpClock(Now now) : now_(std::move(now)) {
  const Names names;
  nn::Kernels::ForEachOp([&](auto op) {
    counters_.emplace_back();
    counters_.back().name = (names.*op).name();
  });
}

OpClock::~OpClock() = default;

void OpClock::Attach(actors::JobSpec& spec) {
  spec.kernels =
      [this, plain = spec]() -> absl::StatusOr<std::unique_ptr<nn::Kernels>> {
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<nn::Kernels> kernels,
                            actors::OpenRankKernels(plain, /*local_rank=*/0));
    return Wrap(std::move(kernels));
  };
}

std::unique_ptr<nn::Kernels> OpClock::Wrap(std::unique_ptr<nn::Kernels> inner) {
  return std::make_unique<TimedKernels>(std::move(inner), *this);
}

void OpClock::Count(Counter& counter, std::int64_t begin) {
  if (!on_.load(std::memory_order_relaxed)) return;
  counter.nanos.fetch_add(now_() - begin, std::memory_order_relaxed);
  counter.calls.fetch_add(1, std::memory_order_relaxed);
}

void OpClock::Start() {
  start_ = now_();
  on_ = true;
}

void OpClock::Stop() {
  on_ = false;
  stop_ = now_();
}

std::vector<OpClock::Time> OpClock::times() const {
  std::vector<Time> times;
  for (const Counter& counter : counters_) {
    if (counter.calls == 0) continue;
    times.push_back({counter.name, static_cast<double>(counter.nanos) * 1e-9,
                     counter.calls});
  }
  std::stable_sort(
      times.begin(), times.end(),
      [](const Time& a, const Time& b) { return a.seconds > b.seconds; });
  return times;
}

double OpClock::seconds() const {
  return static_cast<double>(stop_ - start_) * 1e-9;
}

}  // namespace troupe::tools
