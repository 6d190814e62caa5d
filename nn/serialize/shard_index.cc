#include "nn/serialize/shard_index.h"

#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nlohmann/json.hpp"

namespace troupe::nn {
namespace {

// Limit on a count: a double, in which other readers of JSON keep numbers,
// holds it exactly.
constexpr std::uint64_t kCountMax = std::uint64_t{1} << 53;
// Limit on a file's name in an error.
constexpr std::size_t kNameBytesShown = 80;

absl::Status WrongField(absl::string_view name, absl::string_view wanted) {
  return absl::DataLossError(
      absl::StrCat("field \"", name, "\" is missing or not ", wanted));
}

absl::Status ReadTexts(const nlohmann::json& json, const char* field,
                       std::map<std::string, std::string>& texts) {
  const absl::Status wrong = WrongField(field, "an object of texts");
  const auto map = json.find(field);
  if (map == json.end() || !map->is_object()) return wrong;
  for (const auto& [name, text] : map->items()) {
    if (!text.is_string()) return wrong;
    texts[name] = text.get<std::string>();
  }
  return absl::OkStatus();
}

absl::Status ReadMetadata(const nlohmann::json& json, ShardIndex& index) {
  const auto metadata = json.find("metadata");
  if (metadata == json.end()) return absl::OkStatus();
  if (!metadata->is_object()) return WrongField("metadata", "an object");
  const std::pair<const char*, std::map<std::string, std::string>*> fields[] = {
      {kModelSums, &index.model_sums},
      {kOptimizerSums, &index.optimizer_sums},
      {kModelHashes, &index.model_hashes},
      {kOptimizerHashes, &index.optimizer_hashes}};
  for (const auto& [field, texts] : fields) {
    if (!metadata->contains(field)) continue;
    TROUPE_RETURN_IF_ERROR(ReadTexts(*metadata, field, *texts));
  }
  const auto shards = metadata->find("shards");
  if (shards == metadata->end()) return absl::OkStatus();
  if (!shards->is_number_unsigned() ||
      shards->get<std::uint64_t>() > kCountMax) {
    return WrongField("shards", "an integer in range");
  }
  index.shards = shards->get<std::int64_t>();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ShardIndex> ParseShardIndex(absl::string_view text) {
  const nlohmann::json json =
      nlohmann::json::parse(text.begin(), text.end(), /*cb=*/nullptr,
                            /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::DataLossError("it is not valid JSON");
  if (!json.is_object()) return absl::DataLossError("it is not a JSON object");
  ShardIndex index;
  TROUPE_RETURN_IF_ERROR(ReadTexts(json, "weight_map", index.file_of));
  TROUPE_RETURN_IF_ERROR(ReadMetadata(json, index));
  return index;
}

absl::StatusOr<std::vector<std::string>> FilesOf(const ShardIndex& index) {
  std::set<std::string> names;
  for (const auto& [tensor, file] : index.file_of) {
    if (absl::StrContains(file, '/') || file.empty() || file == "." ||
        file == "..") {
      return absl::DataLossError(
          absl::StrCat("\"", absl::CHexEscape(file.substr(0, kNameBytesShown)),
                       "\" is not the name of a file beside it"));
    }
    names.insert(file);
  }
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace troupe::nn
