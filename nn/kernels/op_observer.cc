#include "nn/kernels/op_observer.h"

#include <string>
#include <utility>

namespace troupe::nn {
namespace {

// A kernel set without kernels, for the names of all ops.
class Names final : public Kernels {
 public:
  Names() : Kernels(Device()) {}
  Allocator& allocator() override { return allocator_; }
  std::string Describe() const override { return "names"; }

 private:
  CachingAllocator allocator_;
};

template <typename ThisOp>
struct Inner {
  Inner(const ThisOp& was, OpObserver& observer, int number)
      : op(was.name()), observer(observer), number(number) {
    op.set_device(was.device());
    op.BindAs(was);
  }

  ThisOp op;
  OpObserver& observer;
  const int number;
};

template <typename... Args>
absl::Status Observe(const Op<absl::Status(Args...)>& op, Args... args) {
  const auto& inner = op.template state<Inner<Op<absl::Status(Args...)>>>();
  const Tensor* tensors[sizeof...(Args)];
  std::size_t count = 0;
  for (const Tensor* tensor : {TensorOf(args)...}) {
    if (tensor != nullptr && tensor->defined()) tensors[count++] = tensor;
  }
  const OpCall call = {inner.number, inner.op.name(), {tensors, count}};
  const std::int64_t token = inner.observer.BeginOp(call);
  absl::Status status = inner.op(args...);
  inner.observer.EndOp(call, token);
  return status;
}

template <typename... Args>
std::shared_ptr<void> Watch(Op<absl::Status(Args...)>& op, OpObserver& observer,
                            int number) {
  using ThisInner = Inner<Op<absl::Status(Args...)>>;
  auto inner = std::make_shared<ThisInner>(op, observer, number);
  op.BindFunction(Observe<Args...>, inner.get());
  return inner;
}

template <typename ThisOp>
void Unwatch(ThisOp& op, const std::shared_ptr<void>& inner) {
  op.BindAs(static_cast<Inner<ThisOp>*>(inner.get())->op);
}

}  // namespace

std::vector<const char*> OpNames() {
  const Names names;
  std::vector<const char*> all;
  Kernels::ForEachOp([&](auto op) { all.push_back((names.*op).name()); });
  return all;
}

ObservedOps::ObservedOps(Kernels& kernels, OpObserver& observer)
    : kernels_(kernels) {
  int number = 0;
  Kernels::ForEachOp([&](auto op) {
    inner_.push_back(Watch(kernels_.*op, observer, number++));
  });
}

void ObservedOps::Restore() {
  std::size_t number = 0;
  Kernels::ForEachOp([&](auto op) { Unwatch(kernels_.*op, inner_[number++]); });
}

}  // namespace troupe::nn
