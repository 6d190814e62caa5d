#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/layout.h"
#include "base/check.h"
#include "nlohmann/json.hpp"

namespace troupe::actors {
namespace {

// Loaders of the Hugging Face libraries look for this.
const nn::SafetensorsMetadata& Metadata() {
  static const auto& metadata = *new nn::SafetensorsMetadata{{"format", "pt"}};
  return metadata;
}

std::string ParentOf(const std::string& path) {
  const std::size_t end = path.find_last_not_of('/');
  const std::size_t slash = path.find_last_of('/', end);
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Of a checkpoint that is not whole yet, or not any more.
std::string TemporaryName(const std::string& path) {
  return absl::StrCat(path, kTemporaryMark, getpid());
}

std::string IndexJson(absl::Span<const CheckpointShard> shards) {
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (const nn::NamedTensor& t : shards[i].model) {
      map[t.name] = ShardName("model", i, shards.size());
      bytes += t.tensor.bytes();
    }
  }
  const nlohmann::ordered_json json = {
      {"metadata", {{"total_size", bytes}, {"shards", shards.size()}}},
      {"weight_map", map}};
  return json.dump(/*indent=*/2) + "\n";
}

// A tensor belongs to one shard; within one, the file's writer looks.
absl::Status CheckShards(absl::Span<const CheckpointShard> shards) {
  std::map<std::string, std::size_t> shard_of;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (const nn::NamedTensor& t : shards[i].model) {
      const auto [at, added] = shard_of.emplace(t.name, i);
      if (!added && at->second != i) {
        return absl::InvalidArgumentError(
            absl::StrCat("two stages have a tensor \"", t.name, "\""));
      }
    }
  }
  return absl::OkStatus();
}

// All files of the checkpoint, on the disk.
absl::Status WriteFiles(base::FileSystem& files, const std::string& folder,
                        const TrainerState& state,
                        absl::Span<const CheckpointShard> shards) {
  TROUPE_RETURN_IF_ERROR(files.CreateFolder(folder));
  for (std::size_t i = 0; i < shards.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(nn::WriteSafetensors(
        files, absl::StrCat(folder, "/", ShardName("model", i, shards.size())),
        shards[i].model, Metadata()));
    TROUPE_RETURN_IF_ERROR(nn::WriteSafetensors(
        files,
        absl::StrCat(folder, "/", ShardName("optimizer", i, shards.size())),
        shards[i].optimizer, Metadata()));
  }
  TROUPE_RETURN_IF_ERROR(base::WriteWholeFile(
      files, absl::StrCat(folder, "/", kIndexName), IndexJson(shards)));
  TROUPE_RETURN_IF_ERROR(base::WriteWholeFile(
      files, absl::StrCat(folder, "/", kStateName), FormatTrainerState(state)));
  return files.SyncFolder(folder);
}

// Gives the finished folder its name, in place of an earlier one.
absl::Status Publish(base::FileSystem& files, const std::string& dir,
                     const std::string& temporary, const std::string& path) {
  const bool replaces = files.Exists(path);
  TROUPE_RETURN_IF_ERROR(replaces ? files.Exchange(temporary, path)
                                  : files.Rename(temporary, path));
  TROUPE_RETURN_IF_ERROR(files.SyncFolder(dir));
  return replaces ? files.RemoveAll(temporary) : absl::OkStatus();
}

// Removes what `keep` no longer covers, and what crashed writers left.
absl::Status RemoveOld(base::FileSystem& files, const std::string& dir,
                       std::int64_t written_step, int keep) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          files.List(dir));
  std::vector<std::int64_t> steps;
  for (const std::string& name : names) {
    const auto step = ParseCheckpointName(name);
    if (step && *step != written_step) steps.push_back(*step);
    const auto unfinished = ParseTemporaryName(name);
    if (unfinished && *unfinished <= written_step) {
      TROUPE_RETURN_IF_ERROR(files.RemoveAll(absl::StrCat(dir, "/", name)));
    }
  }
  if (keep <= 0) return absl::OkStatus();
  std::sort(steps.rbegin(), steps.rend());
  for (std::size_t i = keep - 1; i < steps.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(RemoveCheckpoint(
        files, absl::StrCat(dir, "/", CheckpointName(steps[i]))));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RemoveCheckpoint(base::FileSystem& files,
                              const std::string& path) {
  const std::string unnamed = TemporaryName(path);
  TROUPE_RETURN_IF_ERROR(files.Rename(path, unnamed));
  return files.RemoveAll(unnamed);
}

absl::StatusOr<std::string> WriteCheckpoint(
    base::FileSystem& files, const std::string& dir, const TrainerState& state,
    absl::Span<const CheckpointShard> shards, int keep) {
  TROUPE_RETURN_IF_ERROR(CheckShards(shards));
  const bool new_dir = !files.Exists(dir);
  TROUPE_RETURN_IF_ERROR(files.CreateFolder(dir));
  if (new_dir) TROUPE_RETURN_IF_ERROR(files.SyncFolder(ParentOf(dir)));

  const std::string path = absl::StrCat(dir, "/", CheckpointName(state.step));
  const std::string temporary = TemporaryName(path);
  TROUPE_RETURN_IF_ERROR(files.RemoveAll(temporary));
  absl::Status status = WriteFiles(files, temporary, state, shards);
  if (status.ok()) status = Publish(files, dir, temporary, path);
  if (!status.ok()) {
    // The first error is the one to report.
    files.RemoveAll(temporary).IgnoreError();
    return status;
  }
  TROUPE_RETURN_IF_ERROR(RemoveOld(files, dir, state.step, keep));
  return path;
}

}  // namespace troupe::actors
