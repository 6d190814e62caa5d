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
// ParameterArena binds it. Names are PyTorch's: "linear.weight", "0.bias".
//
// One thread at a time; ranks have modules of their own, made by the same
// function.

#ifndef NN_MODULES_MODULE_H_
#define NN_MODULES_MODULE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "nn/autograd/context.h"
#include "nn/autograd/parameter.h"

namespace troupe::nn {

class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // What the module computes. Called through operator(), which keeps the path
  // of modules for error messages.
  virtual Tensor Forward(Context& ctx, const Tensor& x) = 0;
  Tensor operator()(Context& ctx, const Tensor& x) {
    if (!ctx.ok()) return Tensor();
    ctx.Enter(name_);
    Tensor y = Forward(ctx, x);
    ctx.Leave();
    return y;
  }

  // All parameters below this module in declaration order, their full names
  // set ("features.0.weight").
  std::vector<Parameter*> Parameters();

  const std::string& name() const { return name_; }
  const std::vector<std::unique_ptr<Module>>& children() const {
    return children_;
  }

 protected:
  // Names are unique among a module's parameters and children: CHECK-fails, as
  // Add() and AddChild() do, on one that is taken.
  Parameter& Declare(absl::string_view name, const Shape& shape,
                     const Initializer& init, DType dtype = DType::kF32);

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
  void CheckIsNew(absl::string_view name) const;
  void Collect(const std::string& prefix, std::vector<Parameter*>& all);

  std::string name_;
  std::vector<std::pair<std::string, std::unique_ptr<Parameter>>> parameters_;
  std::vector<std::unique_ptr<Module>> children_;
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

}  // namespace troupe::nn

#endif  // NN_MODULES_MODULE_H_
