// One op of a kernel set, as an object: its name, the roles of its operands,
// and the function that computes it on the set's device. A family of ops is a
// struct of them, and the only place where they are declared:
//
//   struct LinearKernels {
//     // y[N, M] = x[N, K] w[M, K]^T + b[M]
//     Op<absl::Status(In x, In w, In b, Out y)> LinearForward{"LinearForward"};
//   };
//   absl::Status status = kernels.LinearForward(x, w, b, y);   // the caller
//   kernels.LinearForward.Bind<Forward>(&device);  // the kernel set:
//       // absl::Status Forward(MyDevice&, In x, In w, In b, Tensor& y)
//
// Since an operand's type states its role, code that holds for all ops is
// written once, as a template over Op<absl::Status(Args...)>, and applied by
// Kernels::ForEachOp(): conversion of dtypes (nn/kernels/cpu/widening.h),
// queues, counters.
//
// An op that is not bound returns kUnimplemented, naming op and device. Cost of
// a call: that of a virtual function. Threads: the same as for the kernel set.

#ifndef NN_KERNELS_OP_H_
#define NN_KERNELS_OP_H_

#include "absl/status/status.h"
#include "nn/tensor/device.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

// Roles of operands. A caller passes tensors; a kernel takes `const Tensor&`
// for those that it reads and `Tensor&` for the others.
//
// In, Out, InOut and Grad are the numbers that an op computes with, and have
// one dtype unless the op says otherwise. FixedIn and FixedOut have the dtype
// that the op names, such as labels (i64), positions (i32), statistics (f64).

// Read. May be undefined if the op says so, as any other operand.
using In = const Tensor&;

struct FixedIn {
  FixedIn(const Tensor& t) : tensor(t) {}
  operator const Tensor&() const { return tensor; }
  const Tensor& tensor;
};

// Base of the operands that an op writes.
struct Result {
  Result(Tensor& t) : tensor(t) {}
  operator Tensor&() const { return tensor; }
  Tensor& tensor;
};
// Overwritten.
struct Out : Result {
  using Result::Result;
};
struct FixedOut : Result {
  using Result::Result;
};
// Read and written.
struct InOut : Result {
  using Result::Result;
};
// Overwritten, or added to if the op's bool `accumulate`, which precedes its
// gradients, is true.
struct Grad : Result {
  using Result::Result;
};

// Returns the tensor of an operand in the op's common dtype; null for any other
// argument.
inline const Tensor* NumbersOf(In t) { return &t; }
inline const Tensor* NumbersOf(Out t) { return &t.tensor; }
inline const Tensor* NumbersOf(InOut t) { return &t.tensor; }
inline const Tensor* NumbersOf(Grad t) { return &t.tensor; }
template <typename Other>
const Tensor* NumbersOf(const Other&) {
  return nullptr;
}

// Returns the tensor of any operand; null for any other argument.
inline const Tensor* TensorOf(FixedIn t) { return &t.tensor; }
inline const Tensor* TensorOf(FixedOut t) { return &t.tensor; }
template <typename Other>
const Tensor* TensorOf(const Other& argument) {
  return NumbersOf(argument);
}

// Returns the common dtype: that of the first of these operands. An op has at
// least one.
template <typename... Args>
DType DTypeOfNumbers(const Args&... args) {
  const Tensor* found = nullptr;
  ((found = found != nullptr ? found : NumbersOf(args)), ...);
  return found->dtype();
}

template <typename Signature>
class Op;

template <typename... Args>
class Op<absl::Status(Args...)> {
 public:
  // `op` is the called op, which has its name, device and state.
  using Function = absl::Status (*)(const Op& op, Args... args);

  explicit Op(const char* name) : name_(name) {}
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  absl::Status operator()(Args... args) const { return run_(*this, args...); }

  // Name of the op in errors: "LinearForward".
  const char* name() const { return name_; }
  // Device of its kernel set, which sets it.
  Device device() const { return device_; }
  void set_device(Device device) { device_ = device; }

  // Makes the op call kKernel(*state, args...). `state` outlives it.
  template <auto kKernel, typename State>
  void Bind(State* state) {
    BindFunction(
        [](const Op& op, Args... args) -> absl::Status {
          return kKernel(op.template state<State>(), args...);
        },
        state);
  }
  // The same for a function that needs the op itself.
  void BindFunction(Function function, void* state) {
    run_ = function;
    state_ = state;
  }
  // Makes the op call what `other` calls now, whose state outlives it.
  void BindAs(const Op& other) {
    run_ = other.run_;
    state_ = other.state_;
  }
  template <typename State>
  State& state() const {
    return *static_cast<State*>(state_);
  }

 private:
  static absl::Status Unbound(const Op& op, Args...);

  const char* name_;
  Device device_;
  Function run_ = Unbound;
  void* state_ = nullptr;
};

// Returns kUnimplemented: "ReluForward does not compute i64 on cpu:0".
absl::Status DoesNotCompute(const char* op, DType dtype, Device device);
// Returns kUnimplemented: "cuda:0 has no kernel for ReluForward".
absl::Status HasNoKernel(const char* op, Device device);

template <typename... Args>
absl::Status Op<absl::Status(Args...)>::Unbound(const Op& op, Args...) {
  return HasNoKernel(op.name(), op.device());
}

// Calls visit(op) with a pointer to each member of `Family`. All must be
// listed: a missing op is a compile error.
template <typename Family, typename Visit, typename... Ops>
void VisitOps(Visit&& visit, Ops... ops) {
  static_assert(sizeof(Family) == sizeof...(ops) * sizeof(Op<absl::Status()>),
                "every op of the family is listed");
  (visit(ops), ...);
}

}  // namespace troupe::nn

#endif  // NN_KERNELS_OP_H_
