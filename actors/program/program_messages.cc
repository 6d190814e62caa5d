#include "actors/program/program_messages.h"

#include <utility>

#include "base/check.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {
namespace {

// Whether the group's own messages carry the tensor, or refuse it.
bool GoesAsItIs(nn::Kernels& kernels, const nn::Tensor& tensor) {
  return kernels.queues() == nullptr || !tensor.defined() || tensor.is_meta();
}

}  // namespace

absl::StatusOr<Outgoing> PrepareSend(nn::Kernels& kernels,
                                     const comm::Communicator& group,
                                     const nn::Tensor& tensor) {
  if (GoesAsItIs(kernels, tensor)) return Outgoing{tensor, base::Event()};
  if (group.HandsOver()) {
    TROUPE_ASSIGN_OR_RETURN(nn::Tensor copy,
                            nn::Tensor::Create(tensor.shape(), tensor.dtype(),
                                               kernels.allocator()));
    nn::CopyBytes(kernels, nn::Queue::kCompute, tensor, copy);
    return Outgoing{std::move(copy), nn::Record(kernels, nn::Queue::kCompute)};
  }
  if (tensor.host_accessible()) return Outgoing{tensor, base::Event()};
  nn::Wait(kernels, nn::Queue::kReadBack,
           nn::Record(kernels, nn::Queue::kCompute));
  TROUPE_ASSIGN_OR_RETURN(
      nn::Tensor copy, nn::CopyToHost(kernels, nn::Queue::kReadBack, tensor));
  return Outgoing{std::move(copy), nn::Record(kernels, nn::Queue::kReadBack)};
}

absl::Status PrepareReceive(nn::Kernels& kernels,
                            const comm::Communicator& group,
                            Incoming* incoming) {
  const nn::Tensor& into = incoming->into;
  incoming->buffer = into;
  if (GoesAsItIs(kernels, into) || group.HandsOver() ||
      into.host_accessible()) {
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(incoming->buffer,
                          nn::Tensor::Create(into.shape(), into.dtype(),
                                             nn::HostAllocator(kernels)));
  return absl::OkStatus();
}

absl::Status Land(nn::Kernels& kernels, Incoming* incoming) {
  if (std::exchange(incoming->landed, true)) return absl::OkStatus();
  const comm::Arrival& arrival = incoming->arrival;
  const nn::Tensor& into = incoming->into;
  const nn::Tensor& from =
      arrival.data.defined() ? arrival.data : incoming->buffer;
  if (arrival.count == 0 || from.device_data() == into.device_data()) {
    return absl::OkStatus();
  }
  const nn::Shape count{arrival.count};
  nn::CopyBytes(kernels, nn::Queue::kCompute, from.FlatView(0, count),
                into.FlatView(0, count));
  incoming->copied = nn::Record(kernels, nn::Queue::kCompute);
  return into.host_accessible() ? nn::Synchronize(kernels, incoming->copied)
                                : absl::OkStatus();
}

}  // namespace troupe::actors
