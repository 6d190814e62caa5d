// What a kernel found wrong with the numbers that it was given: an index beyond
// a table, a target that is no class. No kernel waits for the host and none
// ends the process, so the first finding is kept in a record, which the host
// reads when it next looks, and which becomes the status of what comes after.
//
//   state.error = error;               // zeros, where kernels may write
//   // ... kernels run; `found` is a copy of the record in the host's memory:
//   absl::Status status = StatusOf(found);
//
// A kernel that meets wrong data counts it for nothing, touches no memory
// beyond its operands, and goes on. Of several wrong rows in a call, the first
// is kept.
//
// Threads: kernels of one stream write it. The host reads a copy of it that was
// made on that stream, or the record itself when that stream is idle.

#ifndef NN_KERNELS_CUDA_KERNEL_PARTS_DATA_ERROR_H_
#define NN_KERNELS_CUDA_KERNEL_PARTS_DATA_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace troupe::nn::cuda {

// Which op met wrong data.
enum DataErrorOp : int {
  kNoDataError = 0,
  kEmbeddingRow = 1,
  kCrossEntropyTarget = 2,
};

// All zeros: there is no error.
struct DataError {
  int op = kNoDataError;
  long long row = 0;    // where the wrong value stands
  long long value = 0;  // the value, in [0, limit) if it were right
  long long limit = 0;
};

// kOutOfRange, naming op, row and value, in the words of the other kernel sets.
inline absl::Status StatusOf(const DataError& error) {
  switch (error.op) {
    case kNoDataError:
      return absl::OkStatus();
    case kEmbeddingRow:
      return absl::OutOfRangeError(
          absl::StrCat("Embedding: index ", error.row, " is ", error.value,
                       ", but the table has ", error.limit, " rows"));
    case kCrossEntropyTarget:
      return absl::OutOfRangeError(absl::StrCat(
          "SoftmaxCrossEntropy: row ", error.row, " has target ", error.value,
          ", but there are ", error.limit, " classes"));
    default:
      return absl::InternalError(
          absl::StrCat("a kernel left a record of unknown kind ", error.op));
  }
}

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_KERNEL_PARTS_DATA_ERROR_H_
