#include "comm/connect/host_key.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"

namespace troupe::comm {

std::string HostKey() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat network {};
  if (boot.empty() || ::stat("/proc/thread-self/ns/net", &network) != 0) {
    std::ifstream("/proc/sys/kernel/random/uuid") >> boot;
    return absl::StrCat("unknown-", boot, "-", ::getpid());
  }
  return absl::StrCat(boot, "-", network.st_ino);
}

}  // namespace troupe::comm
