#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/layout.h"
#include "actors/checkpoint/tensor_hash.h"
#include "actors/checkpoint/writer.h"
#include "base/check.h"
#include "base/fnv_hash.h"
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
    auto sum = shard.sums.begin();
    for (const std::string& name : shard.tensors) {
      map[name] = shard.files[0];
      if (sum != shard.sums.end()) model[name] = HashText(*sum++);
    }
    for (const std::string& name : shard.states) {
      if (sum != shard.sums.end()) optimizer[name] = HashText(*sum++);
    }
    bytes += shard.bytes;
  }
  const nlohmann::ordered_json json = {{"metadata",
                                        {{"total_size", bytes},
                                         {"shards", shards.size()},
                                         {nn::kModelSums, model},
                                         {nn::kOptimizerSums, optimizer}}},
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

// Writes the parts of one file. A single writer has whole tensors.
absl::StatusOr<nn::PartsWritten> WriteParts(
    base::FileSystem& files, const std::string& path,
    const std::vector<nn::TensorPart>& parts, const ShardWriter& writer) {
  if (writer.writers > 1) {
    return nn::WriteTensorParts(files, path, parts, Metadata(),
                                /*is_first=*/writer.number == 0);
  }
  nn::PartsWritten written;
  std::vector<nn::NamedTensor> tensors;
  for (const nn::TensorPart& part : parts) {
    tensors.push_back({part.name, part.elements});
    written.data_bytes += static_cast<std::int64_t>(part.elements.bytes());
  }
  TROUPE_RETURN_IF_ERROR(
      nn::WriteSafetensors(files, path, tensors, Metadata()));
  written.bytes = written.data_bytes;
  return written;
}

// Returns the summary of a shard from those of its writers, sorted by number.
absl::StatusOr<ShardSummary> SumUp(const std::string& folder,
                                   absl::Span<const ShardSummary> parts) {
  ShardSummary whole = parts[0];
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool is_next = parts[i].writer == static_cast<int>(i);
    if (!is_next || static_cast<int>(parts.size()) != whole.writers) {
      return absl::NotFoundError(absl::StrCat(
          "shard ", whole.shard + 1, " of ", folder, " has been written by ",
          parts.size(), " of its ", whole.writers,
          " writers; put the folder where all processes share it"));
    }
    if (i == 0) continue;
    if (parts[i].layout != whole.layout ||
        parts[i].sums.size() != whole.sums.size()) {
      return absl::DataLossError(absl::StrCat(
          "writer ", i, " of shard ", whole.shard + 1, " of ", folder,
          " had other tensors than writer 0; start all processes with one "
          "program and one configuration"));
    }
    whole.written_bytes += parts[i].written_bytes;
    for (std::size_t k = 0; k < whole.sums.size(); ++k) {
      whole.sums[k] += parts[i].sums[k];
    }
  }
  if (whole.written_bytes == whole.data_bytes) return whole;
  return absl::DataLossError(
      absl::StrCat("the writers of shard ", whole.shard + 1, " of ", folder,
                   " had ", whole.written_bytes, " of its ", whole.data_bytes,
                   " bytes; use an earlier checkpoint, and report this error"));
}

// Sums up the summaries of each shard's writers, in the order of the shards.
absl::Status SumUpWriters(const std::string& folder,
                          std::vector<ShardSummary>& shards) {
  std::sort(shards.begin(), shards.end(),
            [](const ShardSummary& a, const ShardSummary& b) {
              return std::pair(a.shard, a.writer) <
                     std::pair(b.shard, b.writer);
            });
  std::vector<ShardSummary> wholes;
  for (std::size_t begin = 0, end = 0; begin < shards.size(); begin = end) {
    while (end < shards.size() && shards[end].shard == shards[begin].shard) {
      ++end;
    }
    TROUPE_ASSIGN_OR_RETURN(
        wholes.emplace_back(),
        SumUp(folder, absl::MakeConstSpan(shards).subspan(begin, end - begin)));
  }
  shards = std::move(wholes);
  return absl::OkStatus();
}

// Sums up each shard, and checks that each of them, and each of their files,
// exists.
absl::Status CheckShards(base::FileSystem& files, const std::string& folder,
                         std::vector<ShardSummary>& shards) {
  TROUPE_RETURN_IF_ERROR(SumUpWriters(folder, shards));
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
                                                  const CheckpointShard& what,
                                                  const ShardWriter& writer) {
  const bool is_first = writer.number == 0;
  ShardSummary summary;
  summary.shard = shard;
  summary.writer = writer.number;
  summary.writers = writer.writers;
  base::FnvHash layout;
  const std::pair<const char*, const std::vector<nn::TensorPart>*> files_of[] =
      {{"model", &what.model}, {"optimizer", &what.optimizer}};
  for (const auto& [name, parts] : files_of) {
    summary.files.push_back(ShardName(name, shard, shards));
    TROUPE_ASSIGN_OR_RETURN(
        const nn::PartsWritten written,
        WriteParts(files, absl::StrCat(folder, "/", summary.files.back()),
                   *parts, writer));
    layout.Add(written.layout);
    summary.data_bytes += written.data_bytes;
    summary.written_bytes += written.bytes;
    if (parts == &what.model) summary.bytes = written.data_bytes;
    for (const nn::TensorPart& part : *parts) {
      summary.sums.push_back(SumOf(part));
      if (!is_first) continue;
      (parts == &what.model ? summary.tensors : summary.states)
          .push_back(part.name);
    }
  }
  summary.layout = layout.value();
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
    for (const nn::TensorPart& named : shards[i].model) {
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
