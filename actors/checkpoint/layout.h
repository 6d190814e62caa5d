// The names of a checkpoint's folder and files, in one place.
//
//   CheckpointName(100);                         // "step-00000100"
//   *ParseCheckpointName("step-00000100");       // 100
//   ShardName("model", 0, 1);                    // "model.safetensors"
//   ShardName("model", 0, 2);        // "model-00001-of-00002.safetensors"
//   ParseShardCount("model", "model-00001-of-00002.safetensors");   // 2

#ifndef ACTORS_CHECKPOINT_LAYOUT_H_
#define ACTORS_CHECKPOINT_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace troupe::actors {

inline constexpr char kIndexName[] = "model.safetensors.index.json";
// Text between the name of an unfinished checkpoint and the number of the
// process that writes or removes it.
inline constexpr char kTemporaryMark[] = ".tmp-";
// File that is locked by the run that writes into the folder of checkpoints.
inline constexpr char kLockName[] = ".lock";
// File by which the processes of a job see that they have one folder.
inline constexpr char kMarkName[] = ".job";
// Link to the checkpoint of the best evaluation, in the folder of checkpoints.
inline constexpr char kBestName[] = "best";
inline constexpr char kStateName[] = "trainer_state.json";
inline constexpr char kPlanName[] = "plan.json";

inline std::string CheckpointName(std::int64_t step) {
  return absl::StrFormat("step-%08d", step);
}

// Returns the step of a whole checkpoint from its folder's name; nothing for
// any other name, also for one of an unfinished checkpoint.
inline std::optional<std::int64_t> ParseCheckpointName(absl::string_view name) {
  std::int64_t step = 0;
  if (!absl::ConsumePrefix(&name, "step-") || name.size() < 8 ||
      !absl::c_all_of(name, absl::ascii_isdigit) ||
      !absl::SimpleAtoi(name, &step)) {
    return std::nullopt;
  }
  return step;
}

// Returns the step of an unfinished checkpoint from its folder's name,
// "step-00000100.tmp-<pid>"; nothing for any other name.
inline std::optional<std::int64_t> ParseTemporaryName(absl::string_view name) {
  const std::size_t mark = name.find(kTemporaryMark);
  if (mark == absl::string_view::npos) return std::nullopt;
  return ParseCheckpointName(name.substr(0, mark));
}

// Limit on the number of shards: names of files have five digits for it.
inline constexpr int kShardsMax = 99999;

// Returns the file name of shard `i` (from 0) of `n` of `what`, the "model" or
// the "optimizer".
inline std::string ShardName(absl::string_view what, std::size_t i,
                             std::size_t n) {
  if (n == 1) return absl::StrCat(what, ".safetensors");
  return absl::StrFormat("%s-%05d-of-%05d.safetensors", what, i + 1, n);
}

// Returns the `n` of a ShardName(); 0 for other names.
inline int ParseShardCount(absl::string_view what, absl::string_view name) {
  if (name == ShardName(what, 0, 1)) return 1;
  constexpr std::size_t kDigits = 5;
  absl::string_view rest = name;
  int i = 0, n = 0;
  if (!absl::ConsumePrefix(&rest, what) || !absl::ConsumePrefix(&rest, "-") ||
      !absl::SimpleAtoi(rest.substr(0, kDigits), &i) ||
      !absl::ConsumeSuffix(&rest, ".safetensors") || rest.size() < kDigits ||
      !absl::SimpleAtoi(rest.substr(rest.size() - kDigits), &n) || i < 1 ||
      n < 2) {
    return 0;
  }
  return name == ShardName(what, static_cast<std::size_t>(i) - 1,
                           static_cast<std::size_t>(n))
             ? n
             : 0;
}

}  // namespace troupe::actors

#endif  // ACTORS_CHECKPOINT_LAYOUT_H_
