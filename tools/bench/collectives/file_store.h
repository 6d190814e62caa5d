// A Store for the processes of one machine: one file in a folder for each key.
//
//   FileStore store(folder);   // visible to all processes
//   absl::Status set = store.Set("links/0", "10.0.0.1:40112");
//
// For benchmarks only: all processes that can write into the folder are
// trusted. Threads: any.

#ifndef TOOLS_BENCH_COLLECTIVES_FILE_STORE_H_
#define TOOLS_BENCH_COLLECTIVES_FILE_STORE_H_

#include <string>
#include <utility>

#include "comm/store.h"

namespace troupe::bench {

class FileStore : public comm::Store {
 public:
  explicit FileStore(std::string folder) : folder_(std::move(folder)) {}

  absl::Status Set(const std::string& key, std::string value) override;
  // Polls the folder every millisecond.
  absl::StatusOr<std::string> Get(const std::string& key,
                                  absl::Duration timeout) override;

 private:
  std::string PathOf(const std::string& key) const;

  const std::string folder_;
};

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_COLLECTIVES_FILE_STORE_H_
