#include "actors/checkpoint/trainer_state.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "actors/checkpoint/json_fields.h"
#include "base/check.h"
#include "nlohmann/json.hpp"

namespace troupe::actors {

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
      {"plan", state.plan},
      {"versions", state.versions},
  };
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
    return absl::UnimplementedError(absl::StrCat("it has format ", format,
                                                 ", this program reads up to ",
                                                 kCheckpointFormat));
  }
  TrainerState state;
  TROUPE_RETURN_IF_ERROR(ReadField(json, "step", state.step));
  TROUPE_RETURN_IF_ERROR(ReadField(json, "seed", state.seed));
  TROUPE_RETURN_IF_ERROR(ReadField(json, "plan", state.plan));
  TROUPE_RETURN_IF_ERROR(ReadField(json, "versions", state.versions));
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
  return state;
}

}  // namespace troupe::actors
