#include "tools/trainer/run/json_log.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/check.h"
#include "nlohmann/json.hpp"

namespace troupe::tools {
namespace {

using Json = nlohmann::ordered_json;

// Size of the parts in which an earlier run's lines are read.
constexpr std::int64_t kBlockBytes = std::int64_t{1} << 20;

// Sets a number; if it is not finite, null and its text.
void SetNumber(Json& json, const std::string& name, double value) {
  if (std::isfinite(value)) {
    json[name] = value;
    return;
  }
  json[name] = nullptr;
  json[name + "_text"] = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

void SetTime(Json& json, absl::Time time) {
  json["time"] =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

// Returns whether a line has a step above `step`, as in R"({..."step":12,...})".
bool IsAfter(absl::string_view line, std::int64_t step) {
  constexpr absl::string_view kName = "\"step\":";
  const std::size_t at = line.find(kName);
  if (at == line.npos) return false;
  line.remove_prefix(at + kName.size());
  const std::size_t digits =
      std::min(line.find_first_not_of("0123456789"), line.size());
  std::int64_t of_line = 0;
  return absl::SimpleAtoi(line.substr(0, digits), &of_line) && of_line > step;
}

// Returns the number of bytes up to the last whole line that IsAfter() `step`
// does not drop.
absl::StatusOr<std::int64_t> BytesUntil(const base::ReadableFile& file,
                                        std::int64_t step) {
  std::int64_t kept = 0;
  std::string line;
  std::vector<char> block;
  for (std::int64_t at = 0; at < file.size(); at += kBlockBytes) {
    block.resize(std::min(kBlockBytes, file.size() - at));
    TROUPE_RETURN_IF_ERROR(file.ReadAt(at, absl::MakeSpan(block)));
    for (std::size_t i = 0; i < block.size(); ++i) {
      if (block[i] != '\n') {
        line += block[i];
        continue;
      }
      if (!IsAfter(line, step)) kept = at + static_cast<std::int64_t>(i) + 1;
      line.clear();
    }
  }
  return kept;
}

absl::Status CopyBytes(const base::ReadableFile& from, std::int64_t bytes,
                       base::WritableFile& to) {
  std::vector<char> block;
  for (std::int64_t at = 0; at < bytes; at += kBlockBytes) {
    block.resize(std::min(kBlockBytes, bytes - at));
    TROUPE_RETURN_IF_ERROR(from.ReadAt(at, absl::MakeSpan(block)));
    TROUPE_RETURN_IF_ERROR(
        to.Append(absl::string_view(block.data(), block.size())));
  }
  TROUPE_RETURN_IF_ERROR(to.Sync());
  return to.Close();
}

// Drops the lines at the end of the file whose steps are above `step`. A crash
// at any moment leaves either all lines or those that are kept.
absl::Status DropAfter(base::FileSystem& files, const std::string& path,
                       std::int64_t step) {
  const auto file = files.Open(path);
  // A pipe or a device keeps no lines.
  if (absl::IsFailedPrecondition(file.status())) return absl::OkStatus();
  TROUPE_RETURN_IF_ERROR(file.status());
  TROUPE_ASSIGN_OR_RETURN(const std::int64_t kept, BytesUntil(**file, step));
  if (kept == (*file)->size()) return absl::OkStatus();
  const std::string shorter = path + ".shorter";
  TROUPE_ASSIGN_OR_RETURN(const auto copy, files.Create(shorter));
  TROUPE_RETURN_IF_ERROR(CopyBytes(**file, kept, *copy));
  TROUPE_RETURN_IF_ERROR(files.Exchange(shorter, path));
  return files.RemoveAll(shorter);
}

}  // namespace

std::string FormatStepJson(const StepEntry& entry) {
  Json json = {{"kind", "train"}, {"step", entry.step}, {"epoch", entry.epoch}};
  SetNumber(json, "loss", entry.loss);
  if (entry.accuracy) SetNumber(json, "accuracy", *entry.accuracy);
  SetNumber(json, "samples_per_s", entry.samples_per_s);
  SetNumber(json, "lr", entry.lr);
  if (entry.grad_norm) SetNumber(json, "grad_norm", *entry.grad_norm);
  json["peak_bytes"] = entry.peak_bytes;
  if (entry.loss_scale) {
    SetNumber(json, "loss_scale", *entry.loss_scale);
    json["skipped_steps"] = entry.skipped_steps;
  }
  SetTime(json, entry.time);
  return json.dump();
}

std::string FormatEvaluationJson(const EvaluationEntry& entry) {
  Json json = {{"kind", "evaluation"}, {"step", entry.step}};
  SetNumber(json, "loss", entry.loss);
  if (entry.accuracy) SetNumber(json, "accuracy", *entry.accuracy);
  json["count"] = entry.count;
  SetTime(json, entry.time);
  return json.dump();
}

absl::StatusOr<JsonLog> JsonLog::Open(base::FileSystem& files,
                                      const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash != std::string::npos && slash > 0) {
    TROUPE_RETURN_IF_ERROR(files.CreateFolder(path.substr(0, slash)));
  }
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<base::WritableFile> file,
                          files.OpenToAppend(path));
  return JsonLog(files, path, std::move(file));
}

absl::Status JsonLog::OnStart(const StartEntry& entry) {
  if (!entry.resumed) return absl::OkStatus();
  TROUPE_RETURN_IF_ERROR(DropAfter(*files_, path_, entry.first_step));
  TROUPE_ASSIGN_OR_RETURN(file_, files_->OpenToAppend(path_));
  return absl::OkStatus();
}

absl::Status JsonLog::Write(const std::string& json) {
  return file_->Append(json + "\n");
}

absl::Status JsonLog::OnStep(const StepEntry& entry) {
  return Write(FormatStepJson(entry));
}

absl::Status JsonLog::OnEvaluation(const EvaluationEntry& entry) {
  return Write(FormatEvaluationJson(entry));
}

}  // namespace troupe::tools
