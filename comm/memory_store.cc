#include "comm/memory_store.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace troupe::comm {

absl::Status MemoryStore::Set(const std::string& key, std::string value) {
  absl::MutexLock lock(&mutex_);
  values_[key] = std::move(value);
  return absl::OkStatus();
}

absl::StatusOr<std::string> MemoryStore::Get(const std::string& key,
                                             absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto is_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return values_.contains(key);
  };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&is_there), timeout)) {
    return absl::DeadlineExceededError(absl::StrCat(
        "nobody has set \"", key, "\" within ", absl::FormatDuration(timeout),
        "; set it in another thread"));
  }
  return values_[key];
}

}  // namespace troupe::comm
