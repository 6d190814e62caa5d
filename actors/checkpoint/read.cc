#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/json_fields.h"
#include "actors/checkpoint/layout.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

// Of the two JSON files; an index of a million tensors has 100 MB.
constexpr std::int64_t kJsonBytesMax = std::int64_t{1} << 28;

absl::Status Damaged(const std::string& path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, " cannot be used: ", what,
                                          "; use an earlier checkpoint"));
}

// What model.safetensors.index.json says.
struct Index {
  std::int64_t shards = 0;
  std::map<std::string, std::string> file_of;
};

absl::StatusOr<Index> ParseIndex(absl::string_view text) {
  TROUPE_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJsonObject(text));
  TROUPE_ASSIGN_OR_RETURN(const nlohmann::json* metadata,
                          ObjectField(json, "metadata"));
  Index index;
  TROUPE_RETURN_IF_ERROR(ReadField(*metadata, "shards", index.shards));
  TROUPE_RETURN_IF_ERROR(ReadField(json, "weight_map", index.file_of));
  return index;
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
        "no checkpoint in ", dir, "; check the path or start from step 0"));
  }
  return std::move(paths.back());
}

absl::StatusOr<Checkpoint> Checkpoint::Open(base::FileSystem& files,
                                            const std::string& path) {
  Checkpoint checkpoint;
  checkpoint.path_ = path;
  const std::string state_path = absl::StrCat(path, "/", kStateName);
  TROUPE_ASSIGN_OR_RETURN(
      std::string json, base::ReadWholeFile(files, state_path, kJsonBytesMax));
  absl::StatusOr<TrainerState> state = ParseTrainerState(json);
  if (!state.ok()) return Damaged(state_path, state.status().message());
  checkpoint.state_ = *std::move(state);
  TROUPE_RETURN_IF_ERROR(checkpoint.OpenShards(files));
  return checkpoint;
}

// Opens the files of all shards; what the index says of them must be so.
absl::Status Checkpoint::OpenShards(base::FileSystem& files) {
  const std::string index_path = absl::StrCat(path_, "/", kIndexName);
  TROUPE_ASSIGN_OR_RETURN(
      const std::string text,
      base::ReadWholeFile(files, index_path, kJsonBytesMax));
  absl::StatusOr<Index> index = ParseIndex(text);
  if (!index.ok()) return Damaged(index_path, index.status().message());
  for (std::int64_t i = 0; i < index->shards; ++i) {
    for (Files* to : {&model_, &optimizer_}) {
      TROUPE_ASSIGN_OR_RETURN(
          nn::SafetensorsFile opened,
          nn::SafetensorsFile::Open(
              files,
              absl::StrCat(path_, "/",
                           ShardName(to == &model_ ? "model" : "optimizer", i,
                                     index->shards))));
      to->push_back(std::move(opened));
    }
  }
  for (const auto& [name, file] : index->file_of) {
    const bool there =
        absl::c_any_of(model_, [&](const nn::SafetensorsFile& opened) {
          return opened.path() == absl::StrCat(path_, "/", file) &&
                 opened.Find(name) != nullptr;
        });
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

absl::Status Checkpoint::Read(const Files& from, absl::string_view name,
                              const nn::Tensor& into) const {
  for (const nn::SafetensorsFile& file : from) {
    if (file.Find(name) != nullptr) return file.Read(name, into);
  }
  return absl::NotFoundError(
      absl::StrCat(path_, " has no tensor \"", name,
                   "\"; it is of another model or optimizer"));
}

}  // namespace troupe::actors
