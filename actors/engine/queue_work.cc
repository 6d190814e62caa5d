#include "actors/engine/queue_work.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace troupe::actors {
namespace {

std::optional<nn::ReduceOp> OpOf(comm::ReduceOp op) {
  switch (op) {
    case comm::ReduceOp::kSum:
      return nn::ReduceOp::kSum;
    case comm::ReduceOp::kAvg:
      return nn::ReduceOp::kAvg;
    case comm::ReduceOp::kMin:
      return nn::ReduceOp::kMin;
    case comm::ReduceOp::kMax:
      return nn::ReduceOp::kMax;
    default:
      return std::nullopt;
  }
}

}  // namespace

void QueueWork::Wait(const base::Event& event) {
  nn::Wait(kernels_, queue_, event);
}

absl::Status QueueWork::Reduce(comm::ReduceOp op,
                               std::vector<nn::Tensor> sources,
                               std::vector<nn::Tensor> destinations) {
  const std::optional<nn::ReduceOp> known = OpOf(op);
  if (!known) {
    return absl::UnimplementedError(absl::StrCat(kernels_.device().ToString(),
                                                 " does not reduce by ",
                                                 comm::ReduceOpName(op)));
  }
  return kernels_.queues()->Reduce(
      queue_, {*known, std::move(sources), std::move(destinations)});
}

void QueueWork::Copy(const nn::Tensor& from, const nn::Tensor& to) {
  nn::CopyBytes(kernels_, queue_, from, to);
}

absl::Status QueueWork::Enqueue(const char* name,
                                std::function<bool(void*)> work) {
  return kernels_.queues()->Enqueue(queue_, name, std::move(work));
}

void QueueWork::LookAfter(std::function<bool()> look) {
  kernels_.queues()->LookAfter(std::move(look));
}

bool QueueWork::capturing() const { return kernels_.queues()->capturing(); }

nn::Allocator* QueueWork::host_allocator() {
  return &kernels_.queues()->host_allocator();
}

base::Event QueueWork::Record() { return nn::Record(kernels_, queue_); }

}  // namespace troupe::actors
