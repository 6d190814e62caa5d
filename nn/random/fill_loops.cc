#include "nn/random/fill_loops.h"

#include "nn/tensor/cpu_isa.h"

namespace troupe::nn {
namespace {

std::vector<const FillLoops*> LoopsOfThisCpu() {
  std::vector<const FillLoops*> loops = {&PlainFillLoops()};
  const CpuIsa best = BestCpuIsa();
  if (best >= CpuIsa::kAvx2) loops.push_back(&Avx2FillLoops());
  if (best >= CpuIsa::kAvx512) loops.push_back(&Avx512FillLoops());
  return loops;
}

}  // namespace

const std::vector<const FillLoops*>& AvailableFillLoops() {
  static const auto* loops =
      new std::vector<const FillLoops*>(LoopsOfThisCpu());
  return *loops;
}

}  // namespace troupe::nn
