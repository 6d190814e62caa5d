#include "nn/random/fill_loops.h"

#include "base/cpu_isa.h"

namespace troupe::nn {
namespace {

std::vector<const FillLoops*> LoopsOfThisCpu() {
  std::vector<const FillLoops*> loops = {&PlainFillLoops()};
  const base::CpuIsa best = base::BestCpuIsa();
  if (best >= base::CpuIsa::kAvx2) loops.push_back(&Avx2FillLoops());
  if (best >= base::CpuIsa::kAvx512) loops.push_back(&Avx512FillLoops());
  return loops;
}

}  // namespace

const std::vector<const FillLoops*>& AvailableFillLoops() {
  static const auto* loops =
      new std::vector<const FillLoops*>(LoopsOfThisCpu());
  return *loops;
}

}  // namespace troupe::nn
