// The plans of a library, one for each spec, chosen as matmul.h describes.
//
// A library lists and times algorithms; the cache chooses between them:
//
//   struct CublasLt {
//     using Spec = MatmulSpec;
//     using Plan = MatmulPlan;
//     using Stream = cudaStream_t;
//     using Plans = std::vector<std::unique_ptr<Plan>>;
//     // Returns the plan of a recorded choice; an error if there is none.
//     absl::StatusOr<std::unique_ptr<Plan>> FromChoice(
//         const Spec& spec, const std::string& choice);
//     // Returns the library's guesses, best first; the options limit them.
//     absl::StatusOr<Plans> Candidates(const Spec& spec);
//     absl::StatusOr<bool> IsCapturing(Stream stream);
//     // Measures in memory of its own; kResourceExhausted: there is none.
//     absl::StatusOr<std::vector<CandidateTimes>> Time(
//         const Spec& spec, const Plans& candidates, Stream stream);
//   };
//   PlanCache<CublasLt> plans(library, options);
//   TROUPE_ASSIGN_OR_RETURN(MatmulPlan* plan, plans.Get(spec, stream));
//
// LibraryPlans wraps a library and its cache in the interface of matmul.h,
// conv.h or attention_plans.h.
//
// Uses no CUDA, so it is tested everywhere. Threads: the device's strand.

#ifndef NN_KERNELS_CUDA_LIBRARIES_PLAN_CACHE_H_
#define NN_KERNELS_CUDA_LIBRARIES_PLAN_CACHE_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/kernels/cuda/libraries/candidates.h"
#include "nn/kernels/cuda/libraries/library_options.h"

namespace troupe::nn::cuda {

template <typename Library>
class PlanCache {
 public:
  using Spec = typename Library::Spec;
  using Plan = typename Library::Plan;
  using Stream = typename Library::Stream;

  PlanCache(Library& library, const LibraryOptions& options)
      : library_(library), options_(options) {}

  absl::StatusOr<Plan*> Get(const Spec& spec, Stream stream) {
    auto found = plans_.find(spec);
    if (found == plans_.end()) {
      TROUPE_RETURN_IF_ERROR(spec.Check());
      absl::StatusOr<std::unique_ptr<Plan>> plan =
          Choose(spec, spec.Key(), stream);
      Entry entry;
      if (plan.ok()) {
        entry.plan = *std::move(plan);
      } else if (absl::IsUnimplemented(plan.status())) {
        entry.why_none = plan.status();
      } else {
        return plan.status();
      }
      found = plans_.emplace(spec, std::move(entry)).first;
    }
    if (found->second.plan == nullptr) return found->second.why_none;
    return found->second.plan.get();
  }

 private:
  // A spec for which the library has no algorithm also has an entry: `plan` is
  // null and `why_none` says why.
  struct Entry {
    std::unique_ptr<Plan> plan;
    absl::Status why_none;
  };

  absl::StatusOr<std::unique_ptr<Plan>> Choose(const Spec& spec,
                                               const std::string& key,
                                               Stream stream) {
    std::optional<std::string> recorded;
    if (options_.choices != nullptr) recorded = options_.choices->Find(key);
    if (recorded.has_value()) {
      absl::StatusOr<std::unique_ptr<Plan>> plan =
          library_.FromChoice(spec, *recorded);
      if (plan.ok()) return plan;
      options_.warn(
          absl::StrCat(key, " is chosen anew, and may give other last bits: ",
                       plan.status().message()));
    }
    TROUPE_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Plan>> candidates,
                            library_.Candidates(spec));
    if (candidates.empty()) {
      return absl::UnimplementedError(
          absl::StrCat(key,
                       ": the library has no algorithm for it; use another "
                       "dtype, or update the library"));
    }
    TROUPE_ASSIGN_OR_RETURN(const bool capturing, library_.IsCapturing(stream));
    const std::string refused = recorded.value_or("");
    const auto guessed = [&] {
      return Agreed(spec, key, std::move(candidates), 0, Origin::kGuessed,
                    refused);
    };
    if (capturing || !options_.measure) return guessed();
    const absl::StatusOr<std::vector<CandidateTimes>> times =
        library_.Time(spec, candidates, stream);
    if (absl::IsResourceExhausted(times.status())) {
      options_.warn(absl::StrCat(
          key, " is not measured, and may be slower than need be: ",
          times.status().message()));
      return guessed();
    }
    TROUPE_RETURN_IF_ERROR(times.status());
    const int best = FastestCandidate(*times);
    if (best < 0) {
      return absl::UnimplementedError(
          absl::StrCat(key,
                       ": every algorithm of the library failed; use another "
                       "dtype, or update the library"));
    }
    return Agreed(spec, key, std::move(candidates), best, Origin::kMeasured,
                  refused);
  }

  // Returns candidates[best], or the algorithm that another rank has recorded
  // first.
  absl::StatusOr<std::unique_ptr<Plan>> Agreed(
      const Spec& spec, const std::string& key,
      std::vector<std::unique_ptr<Plan>> candidates, int best, Origin origin,
      const std::string& refused) {
    if (options_.choices == nullptr) return std::move(candidates[best]);
    const std::string agreed = options_.choices->Agree(
        key, candidates[best]->choice(), origin, refused);
    for (std::unique_ptr<Plan>& candidate : candidates) {
      if (candidate->choice() == agreed) return std::move(candidate);
    }
    absl::StatusOr<std::unique_ptr<Plan>> plan =
        library_.FromChoice(spec, agreed);
    if (plan.ok()) return plan;
    options_.warn(absl::StrCat(
        key, " is computed by another algorithm than other ranks take: ",
        plan.status().message()));
    return std::move(candidates[best]);
  }

  Library& library_;
  const LibraryOptions options_;
  absl::flat_hash_map<Spec, Entry> plans_;
};

// Implements the interface `Plans` (MatmulPlans, ConvPlans or AttentionPlans)
// by a library and the cache of its plans. `library` are the arguments of the
// library's constructor.
template <typename Library, typename Plans>
class LibraryPlans final : public Plans {
 public:
  template <typename... Args>
  explicit LibraryPlans(const LibraryOptions& options, Args&&... library)
      : library_(std::forward<Args>(library)...), plans_(library_, options) {}

  absl::StatusOr<typename Library::Plan*> Get(
      const typename Library::Spec& spec,
      typename Library::Stream stream) override {
    return plans_.Get(spec, stream);
  }

 private:
  Library library_;
  PlanCache<Library> plans_;
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_PLAN_CACHE_H_
