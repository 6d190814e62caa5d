#include "actors/tracing/trace.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "actors/tracing/trace_json.h"

namespace troupe::actors {

ChromeTrace::ChromeTrace(const Options& options)
    : options_(options), start_(absl::Now()) {}

bool ChromeTrace::Wants(std::int64_t step) const {
  std::int64_t start = run_start_.load(std::memory_order_relaxed);
  if (start < 0 && run_start_.compare_exchange_strong(start, step)) {
    start = step;
  }
  const std::int64_t of_run = step - start + 1;
  return of_run >= options_.first_step &&
         of_run < options_.first_step + options_.steps;
}

bool ChromeTrace::IsEmpty() const {
  absl::MutexLock lock(&mutex_);
  return events_.empty();
}

void ChromeTrace::Record(const TraceEvent& event) {
  const double micros = absl::ToDoubleMicroseconds(absl::Now() - start_);
  absl::MutexLock lock(&mutex_);
  if (static_cast<std::int64_t>(events_.size()) >= options_.events_max) {
    ++dropped_;
    return;
  }
  events_.push_back({event, micros});
}

std::vector<StampedEvent> ChromeTrace::Take() {
  absl::MutexLock lock(&mutex_);
  const double start = absl::ToUnixMicros(start_);
  for (StampedEvent& event : events_) event.micros += start;
  return std::exchange(events_, {});
}

void ChromeTrace::Add(std::vector<StampedEvent> events) {
  absl::MutexLock lock(&mutex_);
  const double start = absl::ToUnixMicros(start_);
  for (StampedEvent& event : events) {
    if (static_cast<std::int64_t>(events_.size()) >= options_.events_max) {
      ++dropped_;
      continue;
    }
    event.micros -= start;
    events_.push_back(std::move(event));
  }
  // The sort is stable: events of one process are in order already.
  std::stable_sort(events_.begin(), events_.end(),
                   [](const StampedEvent& a, const StampedEvent& b) {
                     return a.micros < b.micros;
                   });
}

std::string ChromeTrace::ToJson() const {
  absl::MutexLock lock(&mutex_);
  return TraceJson(events_, dropped_);
}

absl::Status ChromeTrace::WriteFile(base::FileSystem& files,
                                    const std::string& path) const {
  return base::WriteWholeFile(files, path, ToJson());
}

}  // namespace troupe::actors
