#include "tools/trainer/run/json_log.h"

#include <cmath>

#include "base/check.h"
#include "nlohmann/json.hpp"

namespace troupe::tools {
namespace {

using Json = nlohmann::ordered_json;

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
  return JsonLog(std::move(file));
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
