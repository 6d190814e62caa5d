// Declares names that the usage comments in nn/kernels/queued/ leave
// undeclared.

#ifndef TESTS_USAGE_WORDS_NN_KERNELS_QUEUED_H_
#define TESTS_USAGE_WORDS_NN_KERNELS_QUEUED_H_

#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/queued/guarded_memory.h"

namespace troupe::nn::usage::queued_device_h {
extern const std::shared_ptr<GuardedMemory> memory;
absl::Status Work();
}  // namespace troupe::nn::usage::queued_device_h

#endif  // TESTS_USAGE_WORDS_NN_KERNELS_QUEUED_H_
