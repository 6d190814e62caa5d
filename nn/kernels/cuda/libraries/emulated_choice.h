// Sets which algorithm is the fastest in tests that emulate CUDA: the emulated
// libraries offer several that differ in last bits, and return fixed times.
//
//   SetEmulatedFastest(1);    // the sums of this "machine" are in f32
//   TrainAgain();
//
// Threads: any; read when an algorithm is chosen.

#ifndef NN_KERNELS_CUDA_LIBRARIES_EMULATED_CHOICE_H_
#define NN_KERNELS_CUDA_LIBRARIES_EMULATED_CHOICE_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "nn/kernels/cuda/libraries/candidates.h"
#include "nn/kernels/cuda/libraries/choice_text.h"

namespace troupe::nn::cuda {

// The precision and order of the sums of an emulated algorithm, and its name in
// choices.
enum class EmulatedSums { kF64, kF32, kF32Reversed };
inline constexpr const char* kEmulatedSumsNames[] = {"loops.f64", "loops.f32",
                                                     "loops.f32-reversed"};
inline constexpr int kEmulatedAlgorithms = 3;

inline std::atomic<int>& EmulatedFastest() {
  static std::atomic<int> fastest{0};
  return fastest;
}
inline void SetEmulatedFastest(int algorithm) { EmulatedFastest() = algorithm; }

// A Library of PlanCache (plan_cache.h). `PlanOf` is the class of its plans,
// constructed from a spec and an EmulatedSums.
template <typename SpecOf, typename AnyPlan, typename PlanOf, typename StreamOf>
struct EmulatedLibrary {
  using Spec = SpecOf;
  using Plan = AnyPlan;
  using Stream = StreamOf;
  using Plans = std::vector<std::unique_ptr<Plan>>;

  absl::StatusOr<std::unique_ptr<Plan>> FromChoice(const Spec& spec,
                                                   const std::string& choice) {
    for (int i = 0; i < kEmulatedAlgorithms; ++i) {
      if (choice != kEmulatedSumsNames[i]) continue;
      return std::make_unique<PlanOf>(spec, static_cast<EmulatedSums>(i));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        choice, " is no algorithm of the emulation; ", kKeepsChoices));
  }
  absl::StatusOr<Plans> Candidates(const Spec& spec) {
    Plans plans;
    for (int i = 0; i < kEmulatedAlgorithms; ++i) {
      plans.push_back(
          std::make_unique<PlanOf>(spec, static_cast<EmulatedSums>(i)));
    }
    return plans;
  }
  absl::StatusOr<bool> IsCapturing(Stream) { return false; }
  absl::StatusOr<std::vector<CandidateTimes>> Time(const Spec&, const Plans&,
                                                   Stream) {
    std::vector<CandidateTimes> times(kEmulatedAlgorithms, {2.0f});
    times[static_cast<std::size_t>(EmulatedFastest())] = {1.0f};
    return times;
  }
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_EMULATED_CHOICE_H_
