#include "tools/bench/collectives/file_store.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"

namespace troupe::bench {

std::string FileStore::PathOf(const std::string& key) const {
  return absl::StrCat(folder_, "/", absl::StrReplaceAll(key, {{"/", "%"}}));
}

absl::Status FileStore::Set(const std::string& key, std::string value) {
  const std::string path = PathOf(key);
  const std::string unfinished = absl::StrCat(path, ".", ::getpid());
  std::ofstream(unfinished, std::ios::binary) << value;
  if (std::rename(unfinished.c_str(), path.c_str()) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, path);
}

absl::StatusOr<std::string> FileStore::Get(const std::string& key,
                                           absl::Duration timeout) {
  const absl::Time until = absl::Now() + timeout;
  for (;;) {
    std::ifstream file(PathOf(key), std::ios::binary);
    if (file) {
      return std::string(std::istreambuf_iterator<char>(file), {});
    }
    if (absl::Now() >= until) {
      return absl::DeadlineExceededError(
          absl::StrCat("nobody has set ", key, " in ", folder_,
                       "; see the output of the other workers"));
    }
    ::poll(nullptr, 0, /*timeout=*/1);
  }
}

}  // namespace troupe::bench
