#include "actors/checkpoint/trainer_state.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "actors/checkpoint/json_fields.h"
#include "base/check.h"
#include "nlohmann/json.hpp"

namespace troupe::actors {
namespace {

// JSON can hold all values of `state`, since only finite ones become the best.
nlohmann::ordered_json ToJson(const EvaluationState& state) {
  return {{"metric", state.metric},
          {"best", state.best},
          {"best_step", state.best_step},
          {"reference", state.reference},
          {"reference_step", state.reference_step},
          {"waited", state.waited},
          {"due", state.due}};
}

absl::StatusOr<EvaluationState> ParseEvaluations(const nlohmann::json& json) {
  EvaluationState state;
  TROUPE_RETURN_IF_ERROR(ReadField(json, "metric", state.metric));
  TROUPE_RETURN_IF_ERROR(ReadField(json, "best", state.best));
  TROUPE_RETURN_IF_ERROR(ReadField(json, "best_step", state.best_step));
  TROUPE_RETURN_IF_ERROR(ReadField(json, "reference", state.reference));
  TROUPE_RETURN_IF_ERROR(
      ReadField(json, "reference_step", state.reference_step));
  TROUPE_RETURN_IF_ERROR(ReadField(json, "waited", state.waited));
  TROUPE_RETURN_IF_ERROR(ReadField(json, "due", state.due));
  return state;
}

}  // namespace

std::string FormatTrainerState(const TrainerState& state) {
  nlohmann::ordered_json json = {
      {"format", kCheckpointFormat},
      {"step", state.step},
      {"seed", state.seed},
      {"sampler",
       {{"epoch", state.sampler.epoch},
        {"samples_consumed", state.sampler.samples_consumed},
        {"dataset_size", state.sampler.dataset_size},
        {"seed", state.sampler.seed}}},
      {"update_counts", state.has_update_counts},
      {"plan", state.plan},
      {"versions", state.versions},
  };
  if (state.evaluations) json["evaluations"] = ToJson(*state.evaluations);
  if (!state.settings.empty()) json["settings"] = state.settings;
  if (!state.sampler.data.empty()) json["sampler"]["data"] = state.sampler.data;
  return json.dump(/*indent=*/2, ' ', /*ensure_ascii=*/false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

absl::StatusOr<TrainerState> ParseTrainerState(absl::string_view text) {
  TROUPE_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJsonObject(text));
  std::int64_t format = 0;
  TROUPE_RETURN_IF_ERROR(ReadField(json, "format", format));
  if (format > kCheckpointFormat) {
    return absl::UnimplementedError(
        absl::StrCat("it has format ", format,
                     " of a later version where this program reads up to ",
                     kCheckpointFormat));
  }
  TrainerState state;
  TROUPE_RETURN_IF_ERROR(ReadField(json, "step", state.step));
  TROUPE_RETURN_IF_ERROR(ReadField(json, "seed", state.seed));
  TROUPE_RETURN_IF_ERROR(ReadField(json, "plan", state.plan));
  TROUPE_RETURN_IF_ERROR(ReadField(json, "versions", state.versions));
  state.has_update_counts = json.contains("update_counts");
  if (state.has_update_counts) {
    TROUPE_RETURN_IF_ERROR(
        ReadField(json, "update_counts", state.has_update_counts));
  }
  TROUPE_ASSIGN_OR_RETURN(const nlohmann::json* sampler,
                          ObjectField(json, "sampler"));
  data::SamplerState& to = state.sampler;
  TROUPE_RETURN_IF_ERROR(ReadField(*sampler, "epoch", to.epoch));
  TROUPE_RETURN_IF_ERROR(
      ReadField(*sampler, "samples_consumed", to.samples_consumed));
  TROUPE_RETURN_IF_ERROR(ReadField(*sampler, "dataset_size", to.dataset_size));
  TROUPE_RETURN_IF_ERROR(ReadField(*sampler, "seed", to.seed));
  if (sampler->contains("data")) {  // older files have none
    TROUPE_RETURN_IF_ERROR(ReadField(*sampler, "data", to.data));
  }
  if (json.contains("settings")) {
    TROUPE_RETURN_IF_ERROR(ReadField(json, "settings", state.settings));
  }
  if (json.contains("evaluations")) {
    TROUPE_ASSIGN_OR_RETURN(const nlohmann::json* evaluations,
                            ObjectField(json, "evaluations"));
    TROUPE_ASSIGN_OR_RETURN(state.evaluations, ParseEvaluations(*evaluations));
  }
  return state;
}

}  // namespace troupe::actors
