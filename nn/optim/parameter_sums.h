// Sums over whole parameters of which ranks have parts (slices of owners under
// ZeRO, pieces along tp): two for each parameter, such as the squares of its
// norm and its update's. Each rank computes those of its parts of a bucket;
// then the ranks add them up.
//
//   TROUPE_ASSIGN_OR_RETURN(Tensor all, sums.Begin(kernels, arena, bucket));
//   kernels.AddSquares(values, sums.At(arena, slot).squares);
//   // ... `all` is added up over the ranks, in place ...
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
    // Direction of this rank's part, from its sums to its update; undefined
    // without one.
    Tensor direction;
  };

  // Sets the sums of a bucket's parameters to 0 and returns all of them. They
  // have the same memory in each step.
  absl::StatusOr<Tensor> Begin(Kernels& kernels, const ParameterArena& arena,
                               int bucket);
  // Whether Begin() has been called.
  bool begun() const { return !buckets_.empty(); }
  // Returns the sums of one of the arena's slots, whose bucket has begun.
  Of& At(const ParameterArena& arena, const ArenaSlot& slot);

 private:
  std::vector<Tensor> buckets_;
  std::vector<Of> slots_;
};

}  // namespace troupe::nn

#endif  // NN_OPTIM_PARAMETER_SUMS_H_
