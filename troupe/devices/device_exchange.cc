#include "troupe/devices/device_exchange.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/chunks/chunk_parameters.h"
#include "base/status_error.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/device_queues.h"

namespace troupe {
namespace {

// Returns the number of rows of all devices but the first.
std::int64_t RowsOfOthers(absl::Span<const std::int64_t> rows) {
  return std::accumulate(rows.begin() + 1, rows.end(), std::int64_t{0});
}

Shape WithRows(Shape shape, std::int64_t rows) {
  shape.set(0, rows);
  return shape;
}

Shape AsRows(const Shape& shape) {
  return shape.rank() == 0 ? Shape{1} : shape;
}

std::string Str(const Tensor& t) {
  return absl::StrCat(nn::DTypeName(t.dtype()), t.shape().ToString());
}

// Returns the elements of the rows of all devices but the first.
std::vector<std::int64_t> ElementsOfOthers(
    const Shape& shape, absl::Span<const std::int64_t> rows) {
  std::vector<std::int64_t> counts(rows.begin(), rows.end());
  counts[0] = 0;
  for (std::int64_t& count : counts) count *= WithRows(shape, 1).numel();
  return counts;
}

// Returns the rows of all devices but the first.
Tensor OfOthers(const Tensor& all, absl::Span<const std::int64_t> rows) {
  return all.Detached().Slice(rows[0], rows[0] + RowsOfOthers(rows));
}

}  // namespace

std::vector<std::int64_t> ChunkRows(std::int64_t rows, int devices) {
  const std::int64_t of_each = (rows + devices - 1) / devices;
  std::vector<std::int64_t> chunks;
  for (int device = 0; device < devices; ++device) {
    chunks.push_back(std::min(of_each, rows));
    rows -= chunks.back();
  }
  return chunks;
}

absl::StatusOr<DividedRows> JoinedRows(absl::Span<const Tensor> outputs) {
  const Tensor& first = outputs[0];
  DividedRows joined;
  joined.shape = AsRows(first.shape());
  joined.dtype = first.dtype();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) {
      joined.rows.push_back(0);
      continue;
    }
    const Shape shape = AsRows(outputs[i].shape());
    joined.rows.push_back(shape[0]);
    if (WithRows(shape, joined.shape[0]) == joined.shape &&
        outputs[i].dtype() == joined.dtype) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "device ", i, " has the output ", Str(outputs[i]),
        ", where device 0 has ", Str(first),
        "; make outputs that differ in their first axis alone, the samples"));
  }
  joined.shape.set(0, std::accumulate(joined.rows.begin(), joined.rows.end(),
                                      std::int64_t{0}));
  return joined;
}

DeviceExchange::DeviceExchange(ModelCore& core, Group& group)
    : core_(core),
      rank_(core.rank()),
      group_(group),
      buffers_(group, rank_.kernels(), core.module()) {}

void DeviceExchange::ShareState() {
  const actors::ChunkParameters& parameters = core_.engine().parameters();
  for (int i = 0; i < parameters.num_arenas(); ++i) {
    const nn::ParameterArena& arena = parameters.arena(i);
    group_.Broadcast(arena.values(), /*root=*/0);
    for (const auto& [name, state] : arena.states()) {
      group_.Broadcast(state, /*root=*/0);
    }
  }
  ShareBuffers();
}

Tensor DeviceExchange::Empty(Shape shape, std::int64_t rows, DType dtype) {
  return base::OrThrow(Tensor::Create(WithRows(shape, rows), dtype,
                                      rank_.kernels().allocator()));
}

void DeviceExchange::Exchange(const Tensor& sent, Counts send_counts,
                              const Tensor& received, Counts receive_counts) {
  base::OrThrow(rank_.strand().Run(
      group_.comm(), comm::AllToAll(sent, std::move(send_counts), received,
                                    std::move(receive_counts))));
}

bool DeviceExchange::shares_memory() const {
  return rank_.kernels().queues() == nullptr;
}

Tensor DeviceExchange::Shared(const Tensor& tensor) const {
  if (shares_memory()) return tensor.Detached();
  return Tensor::Meta(tensor.shape(), tensor.dtype(), tensor.device());
}

void DeviceExchange::ScatterRows(const Tensor& all,
                                 const DividedRows& divided) {
  if (shares_memory() || RowsOfOthers(divided.rows) == 0) return;
  Exchange(OfOthers(all, divided.rows),
           ElementsOfOthers(all.shape(), divided.rows),
           Empty(all.shape(), 0, all.dtype()), Counts(devices()));
}

Tensor DeviceExchange::ReceiveRows(const DividedRows& divided) {
  const auto own = divided.rows.begin() + device();
  if (shares_memory()) {
    const std::int64_t begin =
        std::accumulate(divided.rows.begin(), own, std::int64_t{0});
    return divided.whole.Slice(begin, begin + *own);
  }
  const Tensor part = Empty(divided.shape, *own, divided.dtype);
  if (RowsOfOthers(divided.rows) == 0) return part;
  Counts counts(devices());
  counts[0] = part.numel();
  Exchange(Empty(divided.shape, 0, divided.dtype), Counts(devices()), part,
           std::move(counts));
  return part;
}

Tensor DeviceExchange::GatherRows(absl::Span<const Tensor> parts,
                                  const DividedRows& divided) {
  const Tensor all = Empty(divided.shape, divided.shape[0], divided.dtype);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::int64_t end = begin + divided.rows[i];
    if (end > begin && (i == 0 || shares_memory())) {
      nn::CopyBytes(rank_.kernels(), nn::Queue::kCompute, parts[i],
                    all.Slice(begin, end));
    }
    begin = end;
  }
  if (!shares_memory() && RowsOfOthers(divided.rows) > 0) {
    Exchange(Empty(all.shape(), 0, all.dtype()), Counts(devices()),
             OfOthers(all, divided.rows),
             ElementsOfOthers(all.shape(), divided.rows));
  }
  return all;
}

void DeviceExchange::SendRows(const Tensor& part, const DividedRows& divided) {
  if (RowsOfOthers(divided.rows) == 0) return;
  const Tensor none = Empty(divided.shape, 0, divided.dtype);
  const Tensor sent = part.defined()
                          ? part.Detached().View(
                                WithRows(divided.shape, divided.rows[device()]))
                          : none;
  Counts counts(devices());
  counts[0] = sent.numel();
  Exchange(sent, std::move(counts), none, Counts(devices()));
}

absl::Status DeviceExchange::AwaitFailure() {
  // It ends all groups, and before that it reports its error.
  const absl::Status why = rank_.strand().Run(group_.comm(), comm::Barrier());
  return why.ok() ? absl::InternalError("a device has ended") : why;
}

}  // namespace troupe
