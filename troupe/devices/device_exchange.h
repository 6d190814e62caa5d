// Exchange of rows and state between the devices of a DataParallel
// (troupe/data_parallel.h): rows of batches, outputs and gradients, and the
// state of the first device's replica.
//
//   DeviceExchange exchange(core, group);
//   DividedRows batch;
//   batch.rows = ChunkRows(x.dim(0), /*devices=*/4);
//   batch.shape = x.shape(), batch.dtype = x.dtype();
//   batch.whole = exchange.Shared(x);          // the first device
//   exchange.ScatterRows(x, batch);
//   Tensor part = exchange.ReceiveRows(batch);           // all others
//
// Devices of the host read each other's memory. Others have a collective for
// each call, which all of them make in the same order. Rows are those of the
// first axis; those of the first device stay where they are.
//
// Errors: base::StatusError. Threads: the device's own.

#ifndef TROUPE_DEVICES_DEVICE_EXCHANGE_H_
#define TROUPE_DEVICES_DEVICE_EXCHANGE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/tensor/dtype.h"
#include "nn/tensor/shape.h"
#include "nn/tensor/tensor.h"
#include "troupe/group.h"
#include "troupe/internal/buffer_sync.h"
#include "troupe/internal/model_core.h"

namespace troupe {

// Returns the rows of each device, of `rows` in all, as torch.chunk() cuts
// them: 30 over 4 are 8, 8, 8, 6; 5 over 4 are 2, 2, 1, 0.
std::vector<std::int64_t> ChunkRows(std::int64_t rows, int devices);

// A tensor on the first device, of whose rows each device has a part.
struct DividedRows {
  std::vector<std::int64_t> rows;  // number of those of each device
  nn::Shape shape;
  DType dtype = DType::kF32;
  Tensor whole;  // undefined: not in the host's memory
};

// Returns the rows that outputs of all devices have together. An undefined one
// has none, a scalar one.
//   kInvalidArgument: they differ in more than their rows.
absl::StatusOr<DividedRows> JoinedRows(absl::Span<const Tensor> outputs);

class DeviceExchange {
 public:
  // Both references outlive it. `group`: all devices, the first of which runs
  // the program.
  DeviceExchange(ModelCore& core, Group& group);

  int device() const { return group_.rank(); }
  int devices() const { return group_.size(); }
  // Whether the devices read each other's memory.
  bool shares_memory() const;
  // Returns a handle for other devices: without memory unless they share it.
  Tensor Shared(const Tensor& tensor) const;

  // Gives all devices the parameters, buffers and states of the optimizer of
  // the first one.
  void ShareState();
  // The same with the buffers alone.
  void ShareBuffers() { buffers_.Broadcast(/*root=*/0); }

  // The first device sends the others their rows of `all`, unless they read
  // them.
  void ScatterRows(const Tensor& all, const DividedRows& divided);
  // Returns this device's rows, which with shared memory are a part of the
  // whole.
  Tensor ReceiveRows(const DividedRows& divided);
  // Returns the rows of all devices on the first one. `parts`: its own and,
  // with shared memory, those of the others.
  Tensor GatherRows(absl::Span<const Tensor> parts, const DividedRows& divided);
  // Without shared memory: sends the first device this one's rows. `part` is
  // undefined if it has none.
  void SendRows(const Tensor& part, const DividedRows& divided);
  // Waits for the error of a device that has failed, and returns it.
  absl::Status AwaitFailure();

 private:
  // Counts of elements of each device.
  using Counts = std::vector<std::int64_t>;

  Tensor Empty(Shape shape, std::int64_t rows, DType dtype);
  void Exchange(const Tensor& sent, Counts send_counts, const Tensor& received,
                Counts receive_counts);

  ModelCore& core_;
  Rank& rank_;
  Group& group_;
  BufferSync buffers_;
};

}  // namespace troupe

#endif  // TROUPE_DEVICES_DEVICE_EXCHANGE_H_
