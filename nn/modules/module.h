// A module: parameters it declares, modules it is made of, and Forward().
//
//   class Residual : public Module {
//    public:
//     explicit Residual(std::int64_t n)
//         : linear_(Add<Linear>("linear", n, n)) {}
//     Tensor Forward(Context& ctx, const Tensor& x) override {
//       return ops::Add(ctx, x, linear_(ctx, x));     // no error plumbing
//     }
//    private:
//     Linear& linear_;
//   };
//
// Modules declare, plans allocate: a parameter has no memory until a
// ParameterArena binds it, a buffer none until BindBuffers(). Names are
// PyTorch's: "linear.weight", "0.bias", "1.running_mean".
//
// A module of several inputs or outputs says so and overrides ForwardMany():
//
//   class Attend : public Module {
//    public:
//     Attend() { set_many_tensors(); }
//     TensorList ForwardMany(Context& ctx,
//                            absl::Span<const Tensor> xs) override;
//   };
//   TensorList ys = attend.CallMany(ctx, {query, memory});
//
// Mistakes in a module are the model's first error, with its path: a name that
// is taken twice, an undefined tensor from Forward(), a wrong number of them.
//
// One thread at a time; ranks have modules of their own, made by the same
// function.

#ifndef NN_MODULES_MODULE_H_
#define NN_MODULES_MODULE_H_

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nn/autograd/buffer.h"
#include "nn/autograd/context.h"
#include "nn/autograd/parameter.h"

namespace troupe::nn {

using TensorList = absl::InlinedVector<Tensor, 2>;

class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // What the module computes. Called through operator(), which keeps the path
  // of modules for error messages; an exception becomes the context's error.
  // The default is ForwardMany() of one tensor.
  virtual Tensor Forward(Context& ctx, const Tensor& x);
  Tensor operator()(Context& ctx, const Tensor& x) {
    if (!ctx.ok()) return Tensor();
    ctx.Enter(name_);
    Tensor y;
    try {
      y = Forward(ctx, x);
    } catch (const std::exception&) {
      ctx.FailThrown();
    }
    if (!y.defined() && ctx.ok()) FailUndefined(ctx);
    ctx.Leave();
    return y;
  }

  // The same with lists. The default is Forward() of the one tensor.
  virtual TensorList ForwardMany(Context& ctx, absl::Span<const Tensor> xs);
  TensorList CallMany(Context& ctx, absl::Span<const Tensor> xs);
  // Whether ForwardMany() is the form that the module defines.
  bool many_tensors() const { return many_tensors_; }

  // All parameters below this module in declaration order, their full names
  // set ("features.0.weight"); the buffers likewise.
  std::vector<Parameter*> Parameters();
  std::vector<Buffer*> Buffers();

  // The first mistake in the names that this module and those below declared:
  // kInvalidArgument with the path. ShapeOnlyForward() asks.
  absl::Status CheckDeclarations() const;

  const std::string& name() const { return name_; }
  const std::vector<std::unique_ptr<Module>>& children() const {
    return children_;
  }

 protected:
  // Names are unique among a module's parameters, buffers and children; what
  // is declared under one that is taken makes CheckDeclarations() fail.
  Parameter& Declare(absl::string_view name, const Shape& shape,
                     const Initializer& init, DType dtype = DType::kF32);
  Buffer& DeclareBuffer(absl::string_view name, const Shape& shape,
                        double initial, DType dtype = DType::kF32);
  // In the constructor of a module that overrides ForwardMany().
  void set_many_tensors() { many_tensors_ = true; }

  template <typename M, typename... Args>
  M& Add(absl::string_view name, Args&&... args) {
    auto child = std::make_unique<M>(std::forward<Args>(args)...);
    M& made = *child;
    AddChild(name, std::move(child));
    return made;
  }
  Module& AddChild(absl::string_view name, std::unique_ptr<Module> child);
  // Gives up all children: how a Sequential is cut into stages.
  std::vector<std::unique_ptr<Module>> TakeChildren() {
    return std::move(children_);
  }

 private:
  void NoteName(absl::string_view name);
  void FailUndefined(Context& ctx) const;
  void Collect(const std::string& prefix, std::vector<Parameter*>& parameters,
               std::vector<Buffer*>& buffers);
  absl::Status CheckDeclarations(const std::string& path) const;

  std::string name_;
  bool many_tensors_ = false;
  std::string taken_;  // the first name that was declared twice
  std::vector<std::pair<std::string, std::unique_ptr<Parameter>>> parameters_;
  std::vector<std::pair<std::string, std::unique_ptr<Buffer>>> buffers_;
  std::vector<std::unique_ptr<Module>> children_;
};

// What a tensor will be, before there is one.
struct TensorSpec {
  Shape shape;
  DType dtype = DType::kF32;

  // "f32[2, 3]"
  std::string ToString() const;
  friend bool operator==(const TensorSpec& a, const TensorSpec& b) {
    return a.shape == b.shape && a.dtype == b.dtype;
  }
};

// Makes one rank's copy of a model. Called once per rank, so that ranks share
// nothing; must make the same model every time.
using ModelFactory = std::function<std::unique_ptr<Module>()>;

// Runs `module` on a meta tensor of `input`: checks every shape, and records
// parameters in order of first use, outputs and FLOPs. Returns the output,
// a meta tensor, or the first error.
absl::StatusOr<Tensor> ShapeOnlyForward(Module& module, const Shape& input,
                                        DType dtype, Device device,
                                        ShapeRecord& record);
// The same with lists; every input keeps its dtype.
absl::StatusOr<TensorList> ShapeOnlyForward(Module& module,
                                            absl::Span<const TensorSpec> inputs,
                                            Device device, ShapeRecord& record);

}  // namespace troupe::nn

#endif  // NN_MODULES_MODULE_H_
