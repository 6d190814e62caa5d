#include "base/cpu_cores.h"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace troupe::base {
namespace {

// Returns the lines of a small kernel file; none if it cannot be read.
std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  std::string line;
  while (std::getline(file, line)) lines.push_back(line);
  return lines;
}

// Returns the words of a small kernel file; none if it cannot be read.
std::vector<std::string> WordsOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> words;
  std::string word;
  while (file >> word) words.push_back(word);
  return words;
}

// Returns the whole cores that `quota` of every `period` microseconds fills; 0:
// no limit.
int CoresOf(const std::string& quota, const std::string& period) {
  std::int64_t used = 0, of = 0;
  if (!absl::SimpleAtoi(quota, &used) || !absl::SimpleAtoi(period, &of) ||
      used <= 0 || of <= 0) {
    return 0;
  }
  return static_cast<int>(
      std::clamp<std::int64_t>((used - 1) / of + 1, 1, 1 << 20));
}

// Version 2: one file "<quota or max> <period>".
int LimitOfUnified(const std::string& folder) {
  const std::vector<std::string> words =
      WordsOf(absl::StrCat(folder, "/cpu.max"));
  return words.size() == 2 ? CoresOf(words[0], words[1]) : 0;
}

// Version 1: two files; a quota of -1 is no limit.
int LimitOfCpuController(const std::string& folder) {
  const std::vector<std::string> quota =
      WordsOf(absl::StrCat(folder, "/cpu.cfs_quota_us"));
  const std::vector<std::string> period =
      WordsOf(absl::StrCat(folder, "/cpu.cfs_period_us"));
  return quota.empty() || period.empty() ? 0 : CoresOf(quota[0], period[0]);
}

// Returns the smallest limit of `group` ("/a/b") and its parent groups in
// `mount`.
template <typename Limit>
int SmallestLimit(const std::string& mount, std::string group, Limit limit) {
  int smallest = 0;
  while (true) {
    const int cores = limit(absl::StrCat(mount, group));
    if (cores > 0) smallest = smallest == 0 ? cores : std::min(smallest, cores);
    if (group.empty()) return smallest;
    group.erase(group.find_last_of('/'));
  }
}

}  // namespace

int ControlGroupCores(const std::string& root) {
  int smallest = 0;
  // Lines of "<number>:<controllers>:<group>"; version 2 names no controller.
  for (const std::string& line : LinesOf(root + "/proc/self/cgroup")) {
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3 || !absl::StartsWith(fields[2], "/")) continue;
    const std::string group = fields[2] == "/" ? "" : fields[2];
    const std::vector<absl::string_view> controllers =
        absl::StrSplit(fields[1], ',');
    int cores = 0;
    if (fields[1].empty()) {
      cores = SmallestLimit(root + "/sys/fs/cgroup", group, LimitOfUnified);
    } else if (std::count(controllers.begin(), controllers.end(), "cpu") > 0) {
      cores = SmallestLimit(root + "/sys/fs/cgroup/cpu", group,
                            LimitOfCpuController);
    }
    if (cores > 0) smallest = smallest == 0 ? cores : std::min(smallest, cores);
  }
  return smallest;
}

int AvailableCores() {
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t mask;
  if (sched_getaffinity(/*pid=*/0, sizeof(mask), &mask) == 0) {
    cores = CPU_COUNT(&mask);
  }
  const int granted = ControlGroupCores(/*root=*/"");
  if (granted > 0) cores = std::min(cores, granted);
  return std::max(1, cores);
}

}  // namespace troupe::base
