// The order in which a world has executed operations: a hash of it, and a text
// if the options ask for it.
//
//     ExecutionTrace trace(options.trace);
//     trace.Add(op);
//     trace.text();      // "stream 1 #0 Relu", a line for each
//
// Threads: under the runtime's lock.

#ifndef BASE_CUDA_EMULATED_RUNTIME_EXECUTION_TRACE_H_
#define BASE_CUDA_EMULATED_RUNTIME_EXECUTION_TRACE_H_

#include <cstdint>
#include <string>

#include "base/cuda/emulated/runtime/operation.h"

namespace emulated_cuda {

class ExecutionTrace {
 public:
  explicit ExecutionTrace(bool keeps_text) : keeps_text_(keeps_text) {}

  void Add(const Operation& op) {
    const auto stream = static_cast<std::uint64_t>(op.stream->id);
    hash_ ^= stream << 32 | op.number;
    hash_ *= 0x9E3779B97F4A7C15u;
    hash_ ^= hash_ >> 29;
    if (!keeps_text_) return;
    text_ += NameOf(*op.stream) + " #" + std::to_string(op.number) + " " +
             op.work.name + "\n";
  }
  std::uint64_t hash() const { return hash_; }
  const std::string& text() const { return text_; }

 private:
  bool keeps_text_;
  std::uint64_t hash_ = 0;
  std::string text_;
};

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_EXECUTION_TRACE_H_
