// The index of a model whose tensors are in several safetensors files, Hugging
// Face's model.safetensors.index.json.
//
//   TROUPE_ASSIGN_OR_RETURN(const ShardIndex index, ParseShardIndex(text));
//   index.file_of.at("wte.weight");   // "model-00001-of-00002.safetensors"
//   TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> names,
//                           FilesOf(index));
//
// The text is not trusted: types are checked, and so is that files are beside
// the index. Pure functions.

#ifndef NN_SERIALIZE_SHARD_INDEX_H_
#define NN_SERIALIZE_SHARD_INDEX_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe::nn {

// Limit on the size of an index. One of a million tensors takes 100 MB.
inline constexpr std::int64_t kShardIndexBytesMax = std::int64_t{1} << 28;

// Fields of "metadata": the checksum of each tensor, by name; in checkpoints of
// earlier versions a hash of another kind.
inline constexpr char kModelSums[] = "model_sums";
inline constexpr char kOptimizerSums[] = "optimizer_sums";
inline constexpr char kModelHashes[] = "model_hashes";
inline constexpr char kOptimizerHashes[] = "optimizer_hashes";

struct ShardIndex {
  // Name of the file that has a tensor, by the tensor's name.
  std::map<std::string, std::string> file_of;
  // Fields of "metadata" that Troupe's checkpoints add. Number of shards; 0:
  // the text has none.
  std::int64_t shards = 0;
  // Checksums, and hashes, of tensors as texts, by the tensor's name. Empty:
  // the text has none.
  std::map<std::string, std::string> model_sums, optimizer_sums;
  std::map<std::string, std::string> model_hashes, optimizer_hashes;
};

//   kDataLoss, in words without the path: not such an index; names the field.
absl::StatusOr<ShardIndex> ParseShardIndex(absl::string_view text);

// Returns the names of the index's files, sorted, each once.
//   kDataLoss: one is not the name of a file beside the index.
absl::StatusOr<std::vector<std::string>> FilesOf(const ShardIndex& index);

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_SHARD_INDEX_H_
