// What a run needs besides tensors to go on as if it had never stopped, and
// its text, trainer_state.json.
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

// Of trainer_state.json; a reader refuses a later one.
inline constexpr std::int64_t kCheckpointFormat = 1;

// What a run remembers of its evaluations, to keep the best checkpoint and to
// stop early (actors/supervision/evaluation_track.h).
struct EvaluationState {
  std::string metric;  // "eval_loss" or "eval_accuracy"
  // The best value, and its step; step 0: none was a finite number yet.
  double best = 0;
  std::int64_t best_step = 0;
  // The value that the next one must improve on, its step (0: none yet), and
  // the number of evaluations since then that did not.
  double reference = 0;
  std::int64_t reference_step = 0;
  std::int64_t waited = 0;
  // Whether a stop has put off the evaluation of this very step.
  bool due = false;
};

struct TrainerState {
  std::int64_t step = 0;       // committed steps; counts are below 2^53
  std::uint64_t seed = 0;      // of the job
  data::SamplerState sampler;  // after those steps
  std::string plan;            // for people: how the run was laid out
  // How evaluations went so far, where the run looks for its best checkpoint or
  // may stop early.
  std::optional<EvaluationState> evaluations;
  // What wrote it, by name: {"troupe": "0.1"}.
  std::map<std::string, std::string> versions;
};

// Readable JSON, two spaces deep, that ends with a newline.
std::string FormatTrainerState(const TrainerState& state);

// kDataLoss, without a path: not the JSON above; names the field.
// kUnimplemented: of a later format.
absl::StatusOr<TrainerState> ParseTrainerState(absl::string_view json);

}  // namespace troupe::actors

#endif  // ACTORS_CHECKPOINT_TRAINER_STATE_H_
