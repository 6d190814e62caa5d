#include "nn/kernels/device_queues.h"

#include <sched.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/kernels/kernels.h"

namespace troupe::nn {

absl::Status DeviceQueues::Reduce(Queue, const TreeReduction&) {
  return absl::UnimplementedError("this device does not reduce over ranks");
}

absl::Status DeviceQueues::Enqueue(Queue, const char* name,
                                   std::function<bool(void*)>) {
  return absl::UnimplementedError(
      absl::StrCat(name, ": this device has no streams of its own"));
}

void DeviceQueues::LookAfter(std::function<bool()>) {
  TROUPE_CHECK(false, "only a device with streams has something to look after");
}

absl::Status DeviceQueues::SetWakeup(std::function<void()>, bool) {
  return absl::OkStatus();
}

absl::Status DeviceQueues::BeginCapture() {
  return absl::UnimplementedError("this device records no graphs");
}

absl::StatusOr<std::unique_ptr<DeviceGraph>> DeviceQueues::EndCapture() {
  return absl::UnimplementedError("this device records no graphs");
}

QueueScope::QueueScope(Kernels& kernels, Queue queue)
    : queues_(kernels.queues()) {
  if (queues_ != nullptr) before_ = queues_->SetKernelQueue(queue);
}

QueueScope::~QueueScope() {
  if (queues_ != nullptr) queues_->SetKernelQueue(before_);
}

base::Event Record(Kernels& kernels, Queue queue) {
  DeviceQueues* const queues = kernels.queues();
  return queues == nullptr ? base::Event() : queues->Record(queue);
}

void CopyBytes(Kernels& kernels, Queue queue, const Tensor& from,
               const Tensor& to) {
  TROUPE_CHECK(from.bytes() == to.bytes(), "a copy has as many bytes");
  DeviceQueues* const queues = kernels.queues();
  if (queues != nullptr) return queues->CopyBytes(queue, from, to);
  if (from.bytes() > 0) std::memcpy(to.raw(), from.raw(), from.bytes());
}

void Wait(Kernels& kernels, Queue queue, const base::Event& event) {
  if (event.ready()) return;
  DeviceQueues* const queues = kernels.queues();
  if (queues != nullptr) return queues->Wait(queue, event);
  while (!event.ready()) sched_yield();
}

Allocator& HostAllocator(Kernels& kernels) {
  DeviceQueues* const queues = kernels.queues();
  return queues == nullptr ? kernels.allocator() : queues->host_allocator();
}

absl::StatusOr<Tensor> CopyToHost(Kernels& kernels, Queue queue,
                                  const Tensor& tensor) {
  TROUPE_ASSIGN_OR_RETURN(
      Tensor copy,
      Tensor::Create(tensor.shape(), tensor.dtype(), HostAllocator(kernels)));
  CopyBytes(kernels, queue, tensor, copy);
  return copy;
}

absl::StatusOr<Tensor> CopyToDevice(Kernels& kernels, Queue queue,
                                    const Tensor& tensor) {
  TROUPE_ASSIGN_OR_RETURN(
      Tensor copy,
      Tensor::Create(tensor.shape(), tensor.dtype(), kernels.allocator()));
  const bool apart = queue != Queue::kCompute;
  // Earlier work of kCompute may still use this memory for another tensor.
  if (apart) Wait(kernels, queue, Record(kernels, Queue::kCompute));
  CopyBytes(kernels, queue, tensor, copy);
  if (apart) Wait(kernels, Queue::kCompute, Record(kernels, queue));
  return copy;
}

absl::Status Synchronize(Kernels& kernels, const base::Event& event) {
  DeviceQueues* const queues = kernels.queues();
  if (queues != nullptr && queues->capturing() && !event.ready()) {
    const absl::Status status = absl::FailedPreconditionError(
        "the host waits for the device within what is recorded");
    queues->FailCapture(status);
    return status;
  }
  if (queues != nullptr && queues->host_wait() && !event.ready()) {
    queues->host_wait()(event);
  }
  while (!event.ready()) {
    if (queues == nullptr || !queues->Progress()) sched_yield();
  }
  return event.status();
}

}  // namespace troupe::nn
