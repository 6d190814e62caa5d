// The operators that a communicator has from ncclRedOpCreatePreMulSum(): sums
// of inputs that each rank multiplies by a factor first.
//
//     PreMulOperators operators;
//     const ncclRedOp_t op = operators.Add(made);
//     if (const PreMul* factor = operators.Find(op)) { ... }
//     if (!operators.Remove(op)) return Refuse(...);
//
// Threads: under the runtime's lock.

#ifndef BASE_CUDA_EMULATED_NCCL_PRE_MUL_H_
#define BASE_CUDA_EMULATED_NCCL_PRE_MUL_H_

#include <nccl.h>

#include <map>
#include <utility>
#include <vector>

namespace emulated_cuda {

struct PreMul {
  ncclDataType_t type = ncclFloat32;
  const void* on_device = nullptr;
  std::vector<char> value;  // empty: it is at on_device
};

class PreMulOperators {
 public:
  // Returns a number that no operator of NCCL or of this object had before.
  ncclRedOp_t Add(PreMul factor) {
    const int number = next_++;
    factors_[number] = std::move(factor);
    return static_cast<ncclRedOp_t>(number);
  }
  // Returns null if it was not added, or was removed.
  const PreMul* Find(ncclRedOp_t op) const {
    const auto found = factors_.find(op);
    return found == factors_.end() ? nullptr : &found->second;
  }
  // Returns whether there was such an operator.
  bool Remove(ncclRedOp_t op) { return factors_.erase(op) != 0; }

 private:
  std::map<int, PreMul> factors_;
  int next_ = ncclNumOps;
};

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_NCCL_PRE_MUL_H_
