// The plans of a library, one for each spec, chosen as matmul.h says.
//
//   PlanCache<CublasLt> plans(library, options);
//   TROUPE_ASSIGN_OR_RETURN(MatmulPlan* plan, plans.Get(spec, stream));
//
// A library says what it can do:
//
//   struct CublasLt {
//     using Spec = MatmulSpec;
//     using Plan = MatmulPlan;
//     using Operands = MatmulOperands;
//     // The algorithm of a record, or why it cannot be.
//     absl::StatusOr<std::unique_ptr<Plan>> FromChoice(const Spec& spec,
//                                                      const std::string& choice);
//     // Its guesses, best first, at most as many as the options say.
//     absl::StatusOr<std::vector<std::unique_ptr<Plan>>> Candidates(
//         const Spec& spec);
//     // Operands to measure with.
//     absl::StatusOr<Operands> Sample(const Spec& spec, SampleMemory& memory);
//   };
//
// Threads: the device's strand.

#ifndef NN_KERNELS_CUDA_PLAN_CACHE_H_
#define NN_KERNELS_CUDA_PLAN_CACHE_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/kernels/cuda/library_options.h"
#include "nn/kernels/cuda/measure.h"

namespace troupe::nn::cuda {

template <typename Library>
class PlanCache {
 public:
  using Spec = typename Library::Spec;
  using Plan = typename Library::Plan;

  PlanCache(Library& library, const LibraryOptions& options)
      : library_(library), options_(options) {}

  absl::StatusOr<Plan*> Get(const Spec& spec, cudaStream_t stream) {
    auto found = plans_.find(spec);
    if (found == plans_.end()) {
      TROUPE_RETURN_IF_ERROR(spec.Check());
      absl::StatusOr<std::unique_ptr<Plan>> plan =
          Choose(spec, spec.Key(), stream);
      // That there is none is an answer to remember; lack of memory is not.
      if (!plan.ok() && !absl::IsUnimplemented(plan.status())) {
        return plan.status();
      }
      found = plans_.emplace(spec, std::move(plan)).first;
    }
    if (!found->second.ok()) return found->second.status();
    return found->second->get();
  }

 private:
  absl::StatusOr<std::unique_ptr<Plan>> Choose(const Spec& spec,
                                               const std::string& key,
                                               cudaStream_t stream) {
    const std::string* recorded =
        options_.choices == nullptr ? nullptr : options_.choices->Find(key);
    if (recorded != nullptr) {
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
          absl::StrCat(key, ": the library has no algorithm for it"));
    }
    TROUPE_ASSIGN_OR_RETURN(const bool capturing, IsCapturing(stream));
    if (capturing || !options_.measure) return std::move(candidates[0]);
    TROUPE_ASSIGN_OR_RETURN(const int best, Measure(spec, candidates, stream));
    if (best < 0) {
      return absl::UnimplementedError(
          absl::StrCat(key, ": every algorithm of the library failed"));
    }
    if (options_.choices != nullptr) {
      options_.choices->Put(key, candidates[best]->choice());
    }
    return std::move(candidates[best]);
  }

  // The fastest, or -1.
  absl::StatusOr<int> Measure(
      const Spec& spec, const std::vector<std::unique_ptr<Plan>>& candidates,
      cudaStream_t stream) {
    SampleMemory memory(*options_.allocator, stream);
    TROUPE_ASSIGN_OR_RETURN(const auto operands, library_.Sample(spec, memory));
    std::size_t workspace_bytes = 0;
    for (const auto& plan : candidates) {
      workspace_bytes = std::max(workspace_bytes, plan->workspace_bytes());
    }
    TROUPE_ASSIGN_OR_RETURN(void* const workspace,
                            memory.Bytes(workspace_bytes));
    TROUPE_ASSIGN_OR_RETURN(const std::vector<CandidateTimes> times,
                            TimeCandidates(
                                static_cast<int>(candidates.size()),
                                [&](int i) {
                                  return candidates[i]->Run(operands, workspace,
                                                            stream);
                                },
                                stream));
    return FastestCandidate(times);
  }

  Library& library_;
  const LibraryOptions options_;
  absl::flat_hash_map<Spec, absl::StatusOr<std::unique_ptr<Plan>>> plans_;
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_PLAN_CACHE_H_
