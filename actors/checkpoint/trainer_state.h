// The state besides tensors that a run needs to be resumed as if it had never
// stopped, and its text, trainer_state.json.
//
//   TrainerState state;
//   state.step = 100;
//   state.sampler = source.StateAt(100);
//   std::string json = FormatTrainerState(state);
//   absl::StatusOr<TrainerState> same = ParseTrainerState(json);
//
// 64-bit numbers are written as JSON integers with all their digits.

#ifndef ACTORS_CHECKPOINT_TRAINER_STATE_H_
#define ACTORS_CHECKPOINT_TRAINER_STATE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/sampler.h"

namespace troupe::actors {

// Version of the format of trainer_state.json. A reader refuses a later one.
inline constexpr std::int64_t kCheckpointFormat = 1;

// History of a run's evaluations, to keep the best checkpoint and to stop early
// (actors/supervision/evaluation_track.h).
struct EvaluationState {
  std::string metric;  // "eval_loss" or "eval_accuracy"
  // Best value, and its step; step 0: none was a finite number yet.
  double best = 0;
  std::int64_t best_step = 0;
  // Value that the next one must improve on, its step (0: none yet), and the
  // number of evaluations since then that did not.
  double reference = 0;
  std::int64_t reference_step = 0;
  std::int64_t waited = 0;
  // Whether the evaluation of TrainerState::step has yet to be made, since a
  // stop put it off.
  bool due = false;
};

struct TrainerState {
  std::int64_t step = 0;       // number of committed steps; below 2^53
  std::uint64_t seed = 0;      // the job's
  data::SamplerState sampler;  // state after those steps
  std::string plan;            // the run's layout, as text to be read by people
  // Description of the model and of how it is trained, by key
  // (actors/setup/settings.h); empty in files of earlier versions.
  std::map<std::string, std::string> settings;
  // History of evaluations. Set if the run keeps its best checkpoint or may
  // stop early.
  std::optional<EvaluationState> evaluations;
  // Whether the optimizer's states come with the number of their updates where
  // it is not the run's (actors/chunks/update_counts.h). False in files of
  // earlier versions.
  bool has_update_counts = true;
  // Versions of the programs that wrote it, by name: {"troupe": "0.1"}.
  std::map<std::string, std::string> versions;
};

// Returns JSON, indented by two spaces, that ends with a newline.
std::string FormatTrainerState(const TrainerState& state);

// Parses the text of FormatTrainerState(). Errors have no path.
//   kDataLoss: not that JSON; names the field.
//   kUnimplemented: a later format.
absl::StatusOr<TrainerState> ParseTrainerState(absl::string_view json);

}  // namespace troupe::actors

#endif  // ACTORS_CHECKPOINT_TRAINER_STATE_H_
