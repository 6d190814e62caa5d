#include "tests/comm/links/folder_store.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "base/files/owned_fd.h"
#include "gtest/gtest.h"

namespace troupe::comm {
namespace {

std::string MakeFolder() {
  std::string name = testing::TempDir() + "/store_XXXXXX";
  TROUPE_CHECK(::mkdtemp(name.data()) != nullptr, "tests can make folders");
  return name;
}

}  // namespace

FolderStore::FolderStore() : owner_(::getpid()), folder_(MakeFolder()) {}

FolderStore::~FolderStore() {
  if (::getpid() == owner_) std::filesystem::remove_all(folder_);
}

std::string FolderStore::PathOf(const std::string& key) const {
  return absl::StrCat(folder_, "/", absl::StrReplaceAll(key, {{"/", "_"}}));
}

absl::Status FolderStore::Set(const std::string& key, std::string value) {
  const std::string unfinished = absl::StrCat(PathOf(key), ".", ::getpid());
  std::ofstream(unfinished) << value;
  return std::rename(unfinished.c_str(), PathOf(key).c_str()) == 0
             ? absl::OkStatus()
             : absl::ErrnoToStatus(errno, unfinished);
}

absl::StatusOr<std::string> FolderStore::Get(const std::string& key,
                                             absl::Duration timeout) {
  const absl::Time until = absl::Now() + timeout;
  // The watch begins before the first look, so that no later change is missed.
  const base::OwnedFd changes(::inotify_init1(IN_CLOEXEC));
  if (::inotify_add_watch(changes.get(), folder_.c_str(), IN_MOVED_TO) < 0) {
    return absl::ErrnoToStatus(errno, "inotify");
  }
  for (;;) {
    std::ifstream file(PathOf(key));
    if (file.is_open()) {
      std::ostringstream value;
      value << file.rdbuf();
      return value.str();
    }
    const absl::Duration left = until - absl::Now();
    if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError(key);
    pollfd entry{changes.get(), POLLIN, 0};
    const timespec wait =
        absl::ToTimespec(std::min<absl::Duration>(left, absl::Hours(1)));
    if (::ppoll(&entry, 1, &wait, /*sigmask=*/nullptr) <= 0) continue;
    char events[4096];
    if (::read(changes.get(), events, sizeof(events)) < 0) {
      return absl::ErrnoToStatus(errno, "inotify");
    }
  }
}

}  // namespace troupe::comm
