// The form of an EvaluationState in a message: doubles travel as their bits
// (docs/caf.md).
//
//   commit.evaluations = BitsOf(track.StateWith(/*due=*/false));
//   state.evaluations = StateOf(commit.evaluations);

#ifndef ACTORS_PROTOCOL_EVALUATION_BITS_H_
#define ACTORS_PROTOCOL_EVALUATION_BITS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "actors/caf/caf.h"
#include "actors/checkpoint/trainer_state.h"
#include "actors/chunks/step/step_types.h"

namespace troupe::actors {

struct EvaluationBits {
  std::string metric;  // empty: no state
  std::uint64_t best = 0;
  std::int64_t best_step = 0;
  std::uint64_t reference = 0;
  std::int64_t reference_step = 0;
  std::int64_t waited = 0;
  bool due = false;
  static constexpr char kName[] = "troupe.evaluation_bits";
  auto fields() {
    return std::tie(metric, best, best_step, reference, reference_step, waited,
                    due);
  }
};

inline EvaluationBits BitsOf(const std::optional<EvaluationState>& state) {
  if (!state) return {};
  return {state->metric,
          Bits(state->best),
          state->best_step,
          Bits(state->reference),
          state->reference_step,
          state->waited,
          state->due};
}

inline std::optional<EvaluationState> StateOf(const EvaluationBits& bits) {
  if (bits.metric.empty()) return std::nullopt;
  return EvaluationState{bits.metric,
                         FromBits(bits.best),
                         bits.best_step,
                         FromBits(bits.reference),
                         bits.reference_step,
                         bits.waited,
                         bits.due};
}

}  // namespace troupe::actors

#endif  // ACTORS_PROTOCOL_EVALUATION_BITS_H_
