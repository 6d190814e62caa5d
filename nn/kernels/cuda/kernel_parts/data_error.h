// A record of wrong data that a kernel found in its operands: an index beyond a
// table, or a target that is no class. A kernel cannot return a status and must
// not end the process, so it writes the first finding into this record. The
// host reads the record later and turns it into the status of later events.
//
//   state.error = error;               // zeros, where kernels may write
//   // ... kernels run; `found` is a copy of the record in the host's memory:
//   absl::Status status = StatusOf(found);
//
// A kernel skips wrong data, accesses no memory beyond its operands, and
// continues. If several rows of a call are wrong, the record keeps the first.
//
// Threads: kernels of one stream write the record. The host reads either a copy
// that was made on that stream, or the record itself while the stream is idle.

#ifndef NN_KERNELS_CUDA_KERNEL_PARTS_DATA_ERROR_H_
#define NN_KERNELS_CUDA_KERNEL_PARTS_DATA_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace troupe::nn::cuda {

// The op that found wrong data.
enum DataErrorOp : int {
  kNoDataError = 0,
  kEmbeddingRow = 1,
  kCrossEntropyTarget = 2,
  kAxisIndex = 3,
};

// All zeros: no error.
struct DataError {
  int op = kNoDataError;
  long long row = 0;    // index of the wrong value
  long long value = 0;  // valid values are in [0, limit)
  long long limit = 0;
};

// Returns kOutOfRange with op, row and value, worded as by other kernel sets.
inline absl::Status StatusOf(const DataError& error) {
  switch (error.op) {
    case kNoDataError:
      return absl::OkStatus();
    case kEmbeddingRow:
      return absl::OutOfRangeError(
          absl::StrCat("Embedding: index ", error.row, " is ", error.value,
                       ", but the table has ", error.limit, " rows"));
    case kAxisIndex:
      return absl::OutOfRangeError(
          absl::StrCat("index ", error.row, " is ", error.value,
                       ", but the axis has ", error.limit, " elements"));
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
