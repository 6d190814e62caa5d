// What usage in comm/ leaves to its reader.

#ifndef TESTS_USAGE_WORDS_COMM_H_
#define TESTS_USAGE_WORDS_COMM_H_

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "comm/communicator.h"
#include "comm/local/local_group.h"
#include "comm/reduce_op.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm::usage {

extern const int rank;
extern const nn::Tensor gradients;
extern Communicator& comm;
extern const absl::Duration timeout;

namespace reduction_tree_h {
extern float *a, *b, *c;
}

}  // namespace troupe::comm::usage

namespace troupe::comm::internal::usage {
namespace reduction_kernels_h {
extern const ReduceOp op;
extern const nn::DType dtype;
extern const char* const* sources;
extern char* const* destinations;
extern const int n, m, ranks;
extern const std::int64_t count;
}  // namespace reduction_kernels_h

}  // namespace troupe::comm::internal::usage

#endif  // TESTS_USAGE_WORDS_COMM_H_
