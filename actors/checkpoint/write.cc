#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/layout.h"
#include "actors/checkpoint/tensor_hash.h"
#include "actors/checkpoint/writer.h"
#include "base/check.h"
#include "nlohmann/json.hpp"
#include "nn/serialize/shard_index.h"

namespace troupe::actors {
namespace {

// Metadata of each file, which loaders of the Hugging Face libraries look for.
const nn::SafetensorsMetadata& Metadata() {
  static const auto& metadata = *new nn::SafetensorsMetadata{{"format", "pt"}};
  return metadata;
}

// Returns the name of a checkpoint that is not whole yet, or no longer.
std::string TemporaryName(const std::string& path) {
  return absl::StrCat(path, kTemporaryMark, getpid());
}

std::string IndexJson(absl::Span<const ShardSummary> shards) {
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  nlohmann::ordered_json model = map, optimizer = map;
  std::uint64_t bytes = 0;
  for (const ShardSummary& shard : shards) {
    auto hash = shard.hashes.begin();
    for (const std::string& name : shard.tensors) {
      map[name] = shard.files[0];
      if (hash != shard.hashes.end()) model[name] = HashText(*hash++);
    }
    for (const std::string& name : shard.states) {
      if (hash != shard.hashes.end()) optimizer[name] = HashText(*hash++);
    }
    bytes += shard.bytes;
  }
  const nlohmann::ordered_json json = {{"metadata",
                                        {{"total_size", bytes},
                                         {"shards", shards.size()},
                                         {nn::kModelHashes, model},
                                         {nn::kOptimizerHashes, optimizer}}},
                                       {"weight_map", map}};
  return json.dump(/*indent=*/2) + "\n";
}

// Checks that each tensor belongs to one shard. Names that occur twice within a
// shard are left to WriteSafetensors().
class TensorNames {
 public:
  absl::Status Add(const std::string& name, std::size_t shard) {
    const auto [at, added] = shard_of_.emplace(name, shard);
    if (added || at->second == shard) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("two stages have a tensor \"", name,
                     "\"; give modules and buffers names of their own"));
  }

 private:
  std::map<std::string, std::size_t> shard_of_;
};

// Sorts the shards, and checks that each of them, and each of their files,
// exists.
absl::Status CheckShards(base::FileSystem& files, const std::string& folder,
                         std::vector<ShardSummary>& shards) {
  std::sort(shards.begin(), shards.end(),
            [](const ShardSummary& a, const ShardSummary& b) {
              return a.shard < b.shard;
            });
  TensorNames names;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].shard != static_cast<int>(i) || shards[i].files.empty()) {
      return absl::NotFoundError(
          absl::StrCat("shard ", i + 1, " of ", folder,
                       " is missing, since no process has written it; put the "
                       "folder where all processes share it"));
    }
    for (const std::string& file : shards[i].files) {
      const std::string path = absl::StrCat(folder, "/", file);
      if (files.Exists(path)) continue;
      return absl::NotFoundError(absl::StrCat(
          path,
          " is missing; let all ranks write to one folder, on a disk that "
          "their hosts share"));
    }
    for (const std::string& name : shards[i].tensors) {
      TROUPE_RETURN_IF_ERROR(names.Add(name, i));
    }
  }
  return absl::OkStatus();
}

// Writes index and trainer state, and syncs the folder's list of names.
absl::Status WriteIndex(base::FileSystem& files, const std::string& folder,
                        const TrainerState& state,
                        absl::Span<const ShardSummary> shards) {
  TROUPE_RETURN_IF_ERROR(base::WriteWholeFile(
      files, absl::StrCat(folder, "/", kIndexName), IndexJson(shards)));
  TROUPE_RETURN_IF_ERROR(base::WriteWholeFile(
      files, absl::StrCat(folder, "/", kStateName), FormatTrainerState(state)));
  return files.SyncFolder(folder);
}

// Renames the finished folder to `path`, in place of an earlier one there.
absl::Status Publish(base::FileSystem& files, const std::string& dir,
                     const std::string& temporary, const std::string& path) {
  const bool replaces = files.Exists(path);
  TROUPE_RETURN_IF_ERROR(replaces ? files.Exchange(temporary, path)
                                  : files.Rename(temporary, path));
  TROUPE_RETURN_IF_ERROR(files.SyncFolder(dir));
  return replaces ? files.RemoveAll(temporary) : absl::OkStatus();
}

// Points the link kBestName to the checkpoint of `step`, in one step on disks
// that can: the link before stays until the new one replaces it.
absl::Status MarkBest(base::FileSystem& files, const std::string& dir,
                      std::int64_t step) {
  const std::string path = absl::StrCat(dir, "/", CheckpointName(step));
  if (!files.Exists(path) || FindBestCheckpoint(files, dir) == step) {
    return absl::OkStatus();
  }
  const std::string temporary = TemporaryName(path);
  TROUPE_RETURN_IF_ERROR(files.RemoveAll(temporary));
  TROUPE_RETURN_IF_ERROR(files.MakeLink(CheckpointName(step), temporary));
  return Publish(files, dir, temporary, absl::StrCat(dir, "/", kBestName));
}

// Removes whole checkpoints that neither `keep` nor the link kBestName covers,
// and unfinished ones of this or an earlier step.
absl::Status RemoveOld(base::FileSystem& files, const std::string& dir,
                       std::int64_t written_step, int keep) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          files.List(dir));
  std::vector<std::int64_t> steps;
  const std::optional<std::int64_t> best = FindBestCheckpoint(files, dir);
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
    if (best == steps[i]) continue;
    TROUPE_RETURN_IF_ERROR(RemoveCheckpoint(
        files, absl::StrCat(dir, "/", CheckpointName(steps[i]))));
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<std::int64_t> FindBestCheckpoint(base::FileSystem& files,
                                               const std::string& dir) {
  const absl::StatusOr<std::string> target =
      files.ReadLink(absl::StrCat(dir, "/", kBestName));
  if (!target.ok()) return std::nullopt;
  return ParseCheckpointName(*target);
}

absl::Status DropStaleBest(base::FileSystem& files, const std::string& dir) {
  const std::optional<std::int64_t> best = FindBestCheckpoint(files, dir);
  if (!best || files.Exists(absl::StrCat(dir, "/", CheckpointName(*best)))) {
    return absl::OkStatus();
  }
  return files.RemoveAll(absl::StrCat(dir, "/", kBestName));
}

absl::Status RemoveCheckpoint(base::FileSystem& files,
                              const std::string& path) {
  const std::string unnamed = TemporaryName(path);
  TROUPE_RETURN_IF_ERROR(files.Rename(path, unnamed));
  return files.RemoveAll(unnamed);
}

absl::StatusOr<std::string> CreateCheckpointFolder(base::FileSystem& files,
                                                   const std::string& dir,
                                                   std::int64_t step) {
  TROUPE_RETURN_IF_ERROR(base::CreateFolderOnDisk(files, dir));
  const std::string folder =
      TemporaryName(absl::StrCat(dir, "/", CheckpointName(step)));
  TROUPE_RETURN_IF_ERROR(files.RemoveAll(folder));
  TROUPE_RETURN_IF_ERROR(files.CreateFolder(folder));
  return folder;
}

absl::StatusOr<ShardSummary> WriteCheckpointShard(base::FileSystem& files,
                                                  const std::string& folder,
                                                  int shard, int shards,
                                                  const CheckpointShard& what) {
  ShardSummary summary;
  summary.shard = shard;
  const std::pair<const char*, const std::vector<nn::NamedTensor>*> parts[] = {
      {"model", &what.model}, {"optimizer", &what.optimizer}};
  for (const auto& [part, tensors] : parts) {
    summary.files.push_back(ShardName(part, shard, shards));
    TROUPE_RETURN_IF_ERROR(nn::WriteSafetensors(
        files, absl::StrCat(folder, "/", summary.files.back()), *tensors,
        Metadata()));
  }
  for (const nn::NamedTensor& named : what.model) {
    summary.tensors.push_back(named.name);
    summary.bytes += named.tensor.bytes();
    summary.hashes.push_back(HashOf(named.tensor));
  }
  for (const nn::NamedTensor& named : what.optimizer) {
    summary.states.push_back(named.name);
    summary.hashes.push_back(HashOf(named.tensor));
  }
  return summary;
}

absl::StatusOr<std::string> PublishCheckpoint(base::FileSystem& files,
                                              const std::string& dir,
                                              const std::string& folder,
                                              const TrainerState& state,
                                              std::vector<ShardSummary> shards,
                                              int keep, bool mark_best) {
  const std::string path = absl::StrCat(dir, "/", CheckpointName(state.step));
  absl::Status status = CheckShards(files, folder, shards);
  if (status.ok()) status = WriteIndex(files, folder, state, shards);
  if (status.ok()) status = Publish(files, dir, folder, path);
  if (!status.ok()) {
    // An error of the removal is ignored: the first error is reported.
    RemoveCheckpointFolder(files, folder);
    return status;
  }
  if (mark_best && state.evaluations) {
    TROUPE_RETURN_IF_ERROR(MarkBest(files, dir, state.evaluations->best_step));
  }
  TROUPE_RETURN_IF_ERROR(RemoveOld(files, dir, state.step, keep));
  return path;
}

void RemoveCheckpointFolder(base::FileSystem& files,
                            const std::string& folder) {
  files.RemoveAll(folder).IgnoreError();
}

absl::StatusOr<std::string> WriteCheckpoint(
    base::FileSystem& files, const std::string& dir, const TrainerState& state,
    absl::Span<const CheckpointShard> shards, int keep) {
  TensorNames names;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (const nn::NamedTensor& named : shards[i].model) {
      TROUPE_RETURN_IF_ERROR(names.Add(named.name, i));
    }
  }
  TROUPE_ASSIGN_OR_RETURN(const std::string folder,
                          CreateCheckpointFolder(files, dir, state.step));
  std::vector<ShardSummary> summaries;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    absl::StatusOr<ShardSummary> summary =
        WriteCheckpointShard(files, folder, static_cast<int>(i),
                             static_cast<int>(shards.size()), shards[i]);
    if (!summary.ok()) {
      RemoveCheckpointFolder(files, folder);
      return summary.status();
    }
    summaries.push_back(*std::move(summary));
  }
  return PublishCheckpoint(files, dir, folder, state, std::move(summaries),
                           keep);
}

}  // namespace troupe::actors
