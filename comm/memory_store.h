// A Store for the threads of one process.
//
//   MemoryStore words;
//   TROUPE_RETURN_IF_ERROR(words.Set("address/0", "10.0.0.7:40112"));
//
// Threads: any.

#ifndef COMM_MEMORY_STORE_H_
#define COMM_MEMORY_STORE_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "comm/store.h"

namespace troupe::comm {

class MemoryStore : public Store {
 public:
  absl::Status Set(const std::string& key, std::string value) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::string> Get(const std::string& key,
                                  absl::Duration timeout) override
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::string> values_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::comm

#endif  // COMM_MEMORY_STORE_H_
