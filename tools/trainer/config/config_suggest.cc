#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/edit_distance.h"
#include "tools/trainer/config/config_keys.h"

namespace troupe::tools {
namespace {

// Returns the distance of `name` from `key`, both "section.key". It is small
// for a key of the same name in another section, or one that contains the name.
int KeyDistance(absl::string_view name, const ConfigKey& key) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(name, absl::MaxSplits('.', 1));
  const absl::string_view bare = parts.back();
  const int section = parts.size() == 2 && parts[0] == key.section() ? 0 : 1;
  int distance = base::EditDistance(bare, key.key());
  if (bare.size() >= 3 && absl::StrContains(key.key(), bare)) {
    distance = std::min(distance, 1);
  }
  return 2 * distance + section;
}

}  // namespace

std::string KeyAdvice(absl::string_view name) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(name, absl::MaxSplits('.', 1));
  // Both meanings are common, and the wrong one would train with a worse
  // result.
  if (parts.back() == "batch_size") {
    return "\"batch_size\" can mean two things: train.micro_batch_size is what "
           "one forward of one stage takes, per rank; train.global_batch_size "
           "is what one optimizer step consumes over all replicas; write the "
           "one you mean";
  }
  if (absl::StrContains(parts.back(), "accum")) {
    return absl::StrCat(
        "there is no key ", name,
        ": gradients are accumulated over train.global_batch_size / (mesh.dp * "
        "train.micro_batch_size) micro-batches, rounded up; to accumulate over "
        "4, write "
        "train.micro_batch_size = a quarter of train.global_batch_size / "
        "mesh.dp");
  }
  return "";
}

std::string NearestKey(absl::string_view name) {
  const ConfigKey* nearest = nullptr;
  int best = 0;
  for (const ConfigKey& key : ConfigKeys()) {
    const int distance = KeyDistance(name, key);
    if (nearest == nullptr || distance < best) {
      nearest = &key;
      best = distance;
    }
  }
  const int letters = static_cast<int>(nearest->key().size());
  const int limit = std::min(std::max(2, letters / 3), letters - 1);
  return best <= 2 * limit + 1 ? nearest->name : "";
}

std::string NearestSection(absl::string_view name) {
  const ConfigSection* nearest =
      std::min_element(ConfigSections().begin(), ConfigSections().end(),
                       [&](const ConfigSection& a, const ConfigSection& b) {
                         return base::EditDistance(name, a.name) <
                                base::EditDistance(name, b.name);
                       });
  return base::EditDistance(name, nearest->name) <= 3 ? nearest->name : "";
}

}  // namespace troupe::tools
