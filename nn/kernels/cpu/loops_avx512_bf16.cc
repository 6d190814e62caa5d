#include "nn/kernels/cpu/bf16_product.h"

namespace troupe::nn::cpu {

const BF16Loops& Avx512BF16Loops() {
  static constexpr BF16Loops kLoops = {BF16Scratch, MultiplyBF16, BF16RowsMin};
  return kLoops;
}

}  // namespace troupe::nn::cpu
