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

}  // namespace

OpClock::OpClock() : OpClock(SteadyNanos) {}

OpClock::OpClock(Now now) : now_(std::move(now)) {
  for (const char* name : nn::OpNames()) {
    counters_.emplace_back();
    counters_.back().name = name;
  }
}

void OpClock::Attach(actors::JobSpec& spec) {
  spec.kernels =
      [this, plain = spec]() -> absl::StatusOr<std::unique_ptr<nn::Kernels>> {
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<nn::Kernels> kernels,
                            actors::OpenRankKernels(plain, /*local_rank=*/0));
    Watch(*kernels);
    return kernels;
  };
}

void OpClock::Watch(nn::Kernels& kernels) {
  absl::MutexLock lock(&mutex_);
  watched_.emplace_back(kernels, static_cast<nn::OpObserver&>(*this));
}

std::int64_t OpClock::BeginOp(const nn::OpCall& /*call*/) { return now_(); }

void OpClock::EndOp(const nn::OpCall& call, std::int64_t begin) {
  if (!on_.load(std::memory_order_relaxed)) return;
  Counter& counter = counters_[call.number];
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
