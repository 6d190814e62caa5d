// Sums over whole parameters of which owners have slices (ZeRO): two for each
// parameter, such as the squares of its norm and its update's. Each owner
// computes those of its slices of a bucket, then the owners add them up.
//
//   TROUPE_ASSIGN_OR_RETURN(Tensor all, sums.Begin(kernels, arena, bucket));
//   kernels.AddSquares(values, sums.At(arena, slot).squares);
//   // ... `all` is added up over the owners, in place ...
//   Use(sums.At(arena, slot).squares);
//
// Errors: kResourceExhausted if no memory is left. Threads: one at a time.

#ifndef NN_OPTIM_PARAMETER_SUMS_H_
#define NN_OPTIM_PARAMETER_SUMS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

class ParameterSums {
 public:
  // The sums of one parameter.
  struct Of {
    Tensor squares;  // f64[2], a part of its bucket's sums
    // Direction of the owner's slice, from its sums to its update; undefined
    // without one.
    Tensor direction;
  };

  // Sets the sums of a bucket's parameters to 0 and returns all of them. They
  // have the same memory in each step.
  absl::StatusOr<Tensor> Begin(Kernels& kernels, const ParameterArena& arena,
                               int bucket);
  // Returns the sums of one of the arena's slots, whose bucket has begun.
  Of& At(const ParameterArena& arena, const ArenaSlot& slot);

 private:
  std::vector<Tensor> buckets_;
  std::vector<Of> slots_;
};

}  // namespace troupe::nn

#endif  // NN_OPTIM_PARAMETER_SUMS_H_
