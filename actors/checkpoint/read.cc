#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/layout.h"
#include "actors/checkpoint/tensor_hash.h"
#include "base/check.h"
#include "nn/serialize/shard_index.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kStateBytesMax = std::int64_t{1} << 28;

absl::Status Damaged(const std::string& path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, " cannot be used: ", what,
                                          "; use an earlier checkpoint"));
}

// Refuses a folder named after another step than its own: a copy under a
// higher step's name would pass for the newest checkpoint.
absl::Status CheckName(absl::string_view path, std::int64_t step) {
  while (absl::ConsumeSuffix(&path, "/")) {
  }
  const auto named = ParseCheckpointName(path.substr(path.rfind('/') + 1));
  if (!named || *named == step) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      path, " has the checkpoint of step ", step, "; rename it to ",
      CheckpointName(step), ", or move it away"));
}

absl::StatusOr<nn::ShardIndex> ParseIndex(absl::string_view text) {
  TROUPE_ASSIGN_OR_RETURN(nn::ShardIndex index, nn::ParseShardIndex(text));
  if (index.shards > kShardsMax) {
    return absl::DataLossError(absl::StrCat(
        "it has ", index.shards, " shards; the limit is ", kShardsMax));
  }
  return index;
}

// Returns whether a tensor has the number that `texts` has for its name, or
// `texts` has none.
bool IsAsWritten(const std::map<std::string, std::string>& texts,
                 absl::string_view name, const nn::Tensor& tensor,
                 std::uint64_t (*number_of)(const nn::Tensor& tensor)) {
  const auto written = texts.find(std::string(name));
  return written == texts.end() ||
         written->second == HashText(number_of(tensor));
}

// Returns the file names of all shards of the "model" or the "optimizer".
std::vector<std::string> ShardNames(absl::string_view what,
                                    std::int64_t shards) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < shards; ++i) {
    names.push_back(ShardName(what, i, shards));
  }
  return names;
}

// Returns the optimizer's file names if no index has the number of shards: the
// first file of a shard in the folder tells it. None if there is no shard.
std::vector<std::string> FoundOptimizerFiles(
    const std::vector<std::string>& folder) {
  for (const std::string& name : folder) {
    const int shards = ParseShardCount("optimizer", name);
    if (shards > 0) return ShardNames("optimizer", shards);
  }
  return {};
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListCheckpoints(
    base::FileSystem& files, const std::string& dir) {
  absl::StatusOr<std::vector<std::string>> names = files.List(dir);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  if (!names.ok()) return names.status();
  std::vector<std::pair<std::int64_t, std::string>> found;
  for (const std::string& name : *names) {
    const auto step = ParseCheckpointName(name);
    if (step) found.emplace_back(*step, absl::StrCat(dir, "/", name));
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
}

absl::StatusOr<std::string> FindLatestCheckpoint(base::FileSystem& files,
                                                 const std::string& dir) {
  TROUPE_ASSIGN_OR_RETURN(std::vector<std::string> paths,
                          ListCheckpoints(files, dir));
  if (paths.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no checkpoint in ", dir,
        absl::EndsWith(dir, absl::StrCat("/", kBestName))
            ? "; only a run with keep_best keeps its best one there"
            : "; check the path"));
  }
  return std::move(paths.back());
}

absl::StatusOr<Checkpoint> Checkpoint::Open(base::FileSystem& files,
                                            const std::string& path) {
  Checkpoint checkpoint;
  checkpoint.path_ = path;
  const std::string state_path = absl::StrCat(path, "/", kStateName);
  TROUPE_ASSIGN_OR_RETURN(
      std::string json, base::ReadWholeFile(files, state_path, kStateBytesMax));
  absl::StatusOr<TrainerState> state = ParseTrainerState(json);
  if (!state.ok()) return Damaged(state_path, state.status().message());
  checkpoint.state_ = *std::move(state);
  TROUPE_RETURN_IF_ERROR(CheckName(path, checkpoint.state_.step));
  TROUPE_RETURN_IF_ERROR(checkpoint.OpenShards(files));
  return checkpoint;
}

// Opens a folder without an index: the model is in one file, as
// save_pretrained() writes a small one.
absl::Status Checkpoint::OpenSingle(base::FileSystem& files) {
  TROUPE_ASSIGN_OR_RETURN(const auto folder, files.List(path_));
  const std::string single = ShardName("model", 0, 1);
  const bool in_shards = absl::c_any_of(folder, [](const std::string& name) {
    return ParseShardCount("model", name) > 1;
  });
  if (in_shards || !absl::c_linear_search(folder, single)) {
    return absl::NotFoundError(absl::StrCat(
        path_, " has no ", kIndexName, in_shards ? "" : ", nor a ",
        in_shards ? "" : single,
        in_shards ? ", without which shards of a model cannot be read" : "",
        "; restore it from a copy or use an earlier checkpoint"));
  }
  TROUPE_RETURN_IF_ERROR(OpenFiles(files, {single}, model_));
  return OpenFiles(files, FoundOptimizerFiles(folder), optimizer_);
}

absl::Status Checkpoint::OpenFiles(base::FileSystem& files,
                                   const std::vector<std::string>& names,
                                   Files& to) const {
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(path_, "/", name);
    if (!files.Exists(path)) {
      return absl::NotFoundError(absl::StrCat(
          path_, " lacks ", name,
          "; restore it from a copy or use an earlier checkpoint"));
    }
    TROUPE_ASSIGN_OR_RETURN(nn::SafetensorsFile opened,
                            nn::SafetensorsFile::Open(files, path));
    to.push_back(std::move(opened));
  }
  return absl::OkStatus();
}

// Opens the files of all shards. Each tensor of the index must be in its file.
absl::Status Checkpoint::OpenShards(base::FileSystem& files) {
  const std::string index_path = absl::StrCat(path_, "/", kIndexName);
  if (!files.Exists(index_path)) return OpenSingle(files);
  TROUPE_ASSIGN_OR_RETURN(
      const std::string text,
      base::ReadWholeFile(files, index_path, nn::kShardIndexBytesMax));
  absl::StatusOr<nn::ShardIndex> index = ParseIndex(text);
  if (!index.ok()) return Damaged(index_path, index.status().message());
  model_checks_ = {std::move(index->model_sums),
                   std::move(index->model_hashes)};
  optimizer_checks_ = {std::move(index->optimizer_sums),
                       std::move(index->optimizer_hashes)};
  std::vector<std::string> model = ShardNames("model", index->shards);
  std::vector<std::string> optimizer = ShardNames("optimizer", index->shards);
  if (index->shards == 0) {
    absl::StatusOr<std::vector<std::string>> named = nn::FilesOf(*index);
    if (!named.ok()) return Damaged(index_path, named.status().message());
    model = *std::move(named);
    TROUPE_ASSIGN_OR_RETURN(const auto folder, files.List(path_));
    optimizer = FoundOptimizerFiles(folder);
  }
  TROUPE_RETURN_IF_ERROR(OpenFiles(files, model, model_));
  TROUPE_RETURN_IF_ERROR(OpenFiles(files, optimizer, optimizer_));
  for (const auto& [name, file] : index->file_of) {
    bool there = false;
    for (const nn::SafetensorsFile& opened : model_) {
      there = there || (opened.path() == absl::StrCat(path_, "/", file) &&
                        opened.Find(name) != nullptr);
    }
    if (!there) {
      return Damaged(index_path,
                     absl::StrCat(file, " has no tensor \"", name, "\""));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> Checkpoint::Names(const Files& from) {
  std::vector<std::string> names;
  for (const nn::SafetensorsFile& file : from) {
    for (const nn::SafetensorsEntry& e : file.entries()) {
      names.push_back(e.name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

const nn::SafetensorsEntry* Checkpoint::Find(const Files& from,
                                             absl::string_view name) {
  for (const nn::SafetensorsFile& file : from) {
    const nn::SafetensorsEntry* const entry = file.Find(name);
    if (entry != nullptr) return entry;
  }
  return nullptr;
}

absl::Status Checkpoint::Read(const Files& from, const Checks& checks,
                              absl::string_view name,
                              const nn::Tensor& into) const {
  for (const nn::SafetensorsFile& file : from) {
    if (file.Find(name) == nullptr) continue;
    TROUPE_RETURN_IF_ERROR(file.Read(name, into));
    if (IsAsWritten(checks.sums, name, into, SumOf) &&
        IsAsWritten(checks.hashes, name, into, HashOf)) {
      return absl::OkStatus();
    }
    return Damaged(file.path(),
                   absl::StrCat("the values of tensor \"", name,
                                "\" are not those that were written"));
  }
  return absl::NotFoundError(
      absl::StrCat(path_, " has no tensor \"", name,
                   "\", so it is of another model or optimizer; "
                   "give it to those that it was saved from"));
}

}  // namespace troupe::actors
