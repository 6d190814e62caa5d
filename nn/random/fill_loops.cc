#include "nn/random/fill_loops.h"

namespace troupe::nn {
namespace {

std::vector<const FillLoops*> AskTheCpu() {
  std::vector<const FillLoops*> loops = {&PlainFillLoops()};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) loops.push_back(&Avx2FillLoops());
  if (__builtin_cpu_supports("avx512f")) loops.push_back(&Avx512FillLoops());
#endif
  return loops;
}

}  // namespace

const std::vector<const FillLoops*>& AvailableFillLoops() {
  // Asking takes microseconds in a virtual machine.
  static const auto* loops = new std::vector<const FillLoops*>(AskTheCpu());
  return *loops;
}

}  // namespace troupe::nn
