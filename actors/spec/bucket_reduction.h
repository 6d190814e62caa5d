// How the gradients of a bucket become their sum over the replicas: an
// all-reduce, or what a job has in its place, as a communication hook of
// PyTorch's DistributedDataParallel.
//
//   struct InHalf : BucketReduction {      // one round, in 16 bits
//     InHalf(nn::Kernels* kernels, nn::Tensor half)
//         : kernels(kernels), half(std::move(half)) {}
//     absl::Status Begin(int, const nn::Tensor& grads) override {
//       return kernels->Copy(grads, half);
//     }
//     std::optional<comm::Collective> Exchange(
//         int, const nn::Tensor&) const override {
//       return comm::AllReduce(comm::ReduceOp::kSum, half);
//     }
//     absl::Status End(nn::Tensor grads) override {
//       return kernels->Copy(half, grads);
//     }
//     nn::Kernels* kernels;
//     nn::Tensor half;
//   };
//   spec.hook.name = "in_half";
//   spec.hook.make = [](const GradientBucket& bucket)
//       -> absl::StatusOr<std::unique_ptr<BucketReduction>> {
//     TROUPE_ASSIGN_OR_RETURN(nn::Tensor half,
//                             bucket.Allocate(nn::DType::kBF16));
//     return std::make_unique<InHalf>(bucket.kernels, std::move(half));
//   };
//
// A reduction has one or more *rounds*, each with at most one collective of the
// replicas. For every step and bucket, the step engine (actors/engine) calls
//
//     Begin(0)  Exchange(0)  Begin(1)  Exchange(1)  ...  End()
//
// The collective of a round has ended before the next Begin() and before End().
// Rounds of all buckets are actions of the table (AR0 AR0.1 AR1 AR1.1,
// pipeline/table/schedule.h), so that all ranks start them in one order.
//
// Every replica must compute the same bits from what collectives return, and
// the same collectives, whatever its own gradients are: replicas have equal
// parameters because their gradients are equal. An object has no state from
// one step to the next: checkpoints would not have it.
//
// Queues: Begin() and End() enqueue work in the current queue of the kernels
// and do not wait for it.
// Errors: they end the job. Threads: the compute strand's, one object a bucket.
// Source: Li et al. 2020, arXiv:2006.15704, sec. 6.2.3 (gradient compression);
// torch.distributed.algorithms.ddp_comm_hooks.

#ifndef ACTORS_SPEC_BUCKET_REDUCTION_H_
#define ACTORS_SPEC_BUCKET_REDUCTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/communicator.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/allocator.h"
#include "nn/tensor/dtype.h"
#include "nn/tensor/shape.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

// A bucket of gradients, as a reduction is made for it.
struct GradientBucket {
  struct Parameter {
    std::string name;
    nn::Shape shape;
    std::int64_t begin = 0;  // element of the bucket where it begins
  };

  nn::Kernels* kernels = nullptr;  // outlives the reduction
  // Allocator of tensors that collectives work on; outlives the reduction.
  nn::Allocator* memory = nullptr;
  nn::DType dtype = nn::DType::kF32;
  // Number of elements, a multiple of `replicas`. Those between parameters are
  // padding: zeros on all replicas.
  std::int64_t elems = 0;
  std::vector<Parameter> parameters;
  int replica = 0;  // number of this one, which is its rank in the group
  int replicas = 1;

  // Returns memory for all elements in a dtype, [elems], on which collectives
  // may work.
  //   kResourceExhausted: there is none; says what for.
  absl::StatusOr<nn::Tensor> Allocate(nn::DType dtype) const;
};

class BucketReduction {
 public:
  virtual ~BucketReduction() = default;

  // Enqueues what comes before the collective of a round. `grads`: [elems],
  // those of the bucket; in another step they may be elsewhere.
  virtual absl::Status Begin(int /*round*/, const nn::Tensor& /*grads*/) {
    return absl::OkStatus();
  }
  // Returns the collective of a round; none if there is nothing to exchange.
  virtual std::optional<comm::Collective> Exchange(
      int round, const nn::Tensor& grads) const = 0;
  // Enqueues what comes after the last round. Afterwards `grads` is the sum.
  virtual absl::Status End(nn::Tensor /*grads*/) { return absl::OkStatus(); }

  // Returns whether its one collective works on `grads` alone, and Begin() and
  // End() do nothing. They are then not called.
  virtual bool in_place() const { return false; }
  // Returns whether collectives work on `grads`.
  virtual bool uses_grads() const { return in_place(); }
  // Adds the memory besides `grads` that collectives work on, which a backend
  // may register (comm::Communicator::UseRanges).
  virtual void AddRanges(std::vector<nn::Tensor>& /*ranges*/) const {}
};

// A kind of reduction that a job has in place of the all-reduce.
struct CommunicationHook {
  // Name with all options that change bits: "gather_bf16". It is a part of the
  // plan. Empty: none; gradients are all-reduced.
  std::string name;
  int rounds = 1;
  // Returns the reduction of a bucket. Called for each bucket of a rank, in the
  // rank's thread, several at once; only if there are several replicas.
  std::function<absl::StatusOr<std::unique_ptr<BucketReduction>>(
      const GradientBucket& bucket)>
      make;
};

}  // namespace troupe::actors

#endif  // ACTORS_SPEC_BUCKET_REDUCTION_H_
