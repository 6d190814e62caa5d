// Base class of layers and models (torch.nn.Module): parameters, children, and
// Forward().
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
// ParameterArena binds it, a buffer none until BindBuffers(). Names are the
// same as in PyTorch: "linear.weight", "0.bias", "1.running_mean".
//
// A module of several inputs or outputs calls set_many_tensors() and overrides
// ForwardMany():
//
//   class Attend : public Module {
//    public:
//     Attend() { set_many_tensors(); }
//     TensorList ForwardMany(Context& ctx,
//                            absl::Span<const Tensor> xs) override;
//   };
//   TensorList ys = attend.CallMany(ctx, {query, memory});
//
// Modules may share a parameter: it is one tensor with one gradient, the sum
// over its uses, and is listed, saved and updated once, under the first of its
// names.
//
//   auto& tokens = model->AppendNamed<Embedding>("wte", 50257, 768);
//   auto& head = model->AppendNamed<Linear>("lm_head", 768, 50257);
//   head.TieParameter("weight", tokens, "weight");    // listed as "wte.weight"
//
// In a loop whose tensors are Vars, a module is called with a Var alone, and
// throws what a Var throws (nn/autograd/var.h, nn/modules/net.h):
//
//   Var y = attend(Var(ctx, query));
//
// A child without a name ("") adds its declarations to its parent: parameter
// "cls_token" of that child is called "cls_token" in the model, too.
//
// Mistakes in a module are the model's first error, with its path: a name that
// is used twice, an undefined tensor from Forward(), a wrong number of tensors,
// a parameter that is tied to one of another shape, a layer that is a plain
// member instead of being added.
//
// Threads: one at a time; each rank has modules of its own, made by the same
// function.

#ifndef NN_MODULES_MODULE_H_
#define NN_MODULES_MODULE_H_

#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nn/autograd/buffer.h"
#include "nn/autograd/context.h"
#include "nn/autograd/parameter.h"
#include "nn/autograd/sharding.h"
#include "nn/autograd/var.h"

namespace troupe::nn {

class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Computes the module's output. Called through operator(), which keeps the
  // path of modules for error messages and turns an exception into the
  // context's error. The default calls ForwardMany() with one tensor.
  virtual Tensor Forward(Context& ctx, const Tensor& x);
  Tensor operator()(Context& ctx, const Tensor& x) {
    if (!ctx.ok()) return Tensor();
    if (!added_ && ctx.in_module() && HasDeclarations()) {
      FailPlainMember(ctx);
      return Tensor();
    }
    const int names = EnterPath(ctx);
    Tensor y;
    try {
      y = recomputes_ ? ForwardTwice(ctx, x) : Forward(ctx, x);
    } catch (const std::exception&) {
      ctx.FailThrown();
    }
    if (!y.defined() && ctx.ok()) FailUndefined(ctx);
    for (int i = 0; i < names; ++i) ctx.Leave();
    return y;
  }
  // Throws the error, with its path, as a base::StatusError.
  Var operator()(const Var& x) {
    Context& ctx = x.context();
    return Var(ctx, (*this)(ctx, x.tensor()));
  }

  // The same with lists. The default calls Forward(), with exactly one tensor.
  virtual TensorList ForwardMany(Context& ctx, absl::Span<const Tensor> xs);
  TensorList CallMany(Context& ctx, absl::Span<const Tensor> xs);
  // Whether the module defines ForwardMany() rather than Forward().
  bool many_tensors() const { return many_tensors_; }

  // Whether training keeps no activations of this module, and backward calls
  // Forward() a second time (nn/ops/recompute.h). Has no effect on
  // ForwardMany(). nn/modules/recompute.h chooses modules of a model.
  bool recomputes() const { return recomputes_; }
  void set_recomputes(bool recomputes) { recomputes_ = recomputes; }

  // Makes this module, without its children, the part of the rank at `places`,
  // for LocaliseModel(). The default leaves the module whole.
  virtual absl::Status Localise(absl::Span<const AxisPlace> /*places*/) {
    return absl::OkStatus();
  }

  // Declares that ranks along "tp" may share tokens in this model: each layer
  // that works on a rank's own says so (docs/parallelism.md).
  void set_shares_tokens() { shares_tokens_ = true; }
  bool shares_tokens() const { return shares_tokens_; }

  // Returns all parameters below this module in declaration order, each once,
  // and sets their full names ("features.0.weight"); the buffers likewise.
  std::vector<Parameter*> Parameters();
  std::vector<Buffer*> Buffers();

  // Returns a parameter of this module itself, not of those below it, for
  // init.h or to freeze it: `fc1.weight()`. Throws base::StatusError, with the
  // names that it has, if there is none of the name.
  Parameter& parameter(absl::string_view name);
  Parameter& weight() { return parameter("weight"); }
  Parameter& bias() { return parameter("bias"); }

  // Replaces `name`, a parameter of this module, by `other_name`, a parameter
  // of `other`, of the same shape and dtype: PyTorch's
  // `head.weight = tokens.weight`. The initialiser is that of `other`. Call it
  // when the model is made, before it has memory.
  void TieParameter(absl::string_view name, Module& other,
                    absl::string_view other_name);

  // Returns the first mistake in the declarations of this module and those
  // below: kInvalidArgument with the path. ShapeOnlyForward() calls it.
  absl::Status CheckDeclarations() const { return CheckDeclarations(name_); }

  const std::string& name() const { return name_; }
  const std::vector<std::unique_ptr<Module>>& children() const {
    return children_;
  }

 protected:
  // Declare a parameter or buffer. Names are unique among a module's
  // parameters, buffers and children (and the declarations of children without
  // a name); a name that is taken makes CheckDeclarations() fail.
  Parameter& Declare(absl::string_view name, const Shape& shape,
                     const Initializer& init, DType dtype = DType::kF32);
  Buffer& DeclareBuffer(absl::string_view name, const Shape& shape,
                        double initial, DType dtype = DType::kF32);
  // Called in the constructor of a module that overrides ForwardMany().
  void set_many_tensors() { many_tensors_ = true; }

  template <typename M, typename... Args>
  M& Add(absl::string_view name, Args&&... args) {
    auto child = std::make_unique<M>(std::forward<Args>(args)...);
    M& made = *child;
    AddChild(name, std::move(child));
    return made;
  }
  Module& AddChild(absl::string_view name, std::unique_ptr<Module> child);
  // For a `child` of `list` that other modules call: the name of the list is
  // part of its path all the same.
  static void PutInList(Module& child, const Module& list) {
    child.list_ = &list;
  }
  // Gives up all children, to cut a Sequential into stages.
  std::vector<std::unique_ptr<Module>> TakeChildren() {
    return std::move(children_);
  }

 private:
  struct Collected;

  // Enters this module, and the list that it is in. Returns the number of names
  // that the caller has to leave again.
  int EnterPath(Context& ctx) const {
    const int above = list_ != nullptr ? list_->EnterPath(ctx) : 0;
    ctx.Enter(name_);
    return above + 1;
  }
  Tensor ForwardTwice(Context& ctx, const Tensor& x);
  void FailUndefined(Context& ctx) const;
  // Fails: this module is called in another one and was added to none.
  void FailPlainMember(Context& ctx) const;
  // Whether this module or one below it has parameters or buffers.
  bool HasDeclarations() const;
  std::shared_ptr<Parameter> FindOwn(absl::string_view name) const;
  void Collect(const std::string& prefix, Collected& all);
  // Returns the first name that is in `names` already; empty: none.
  std::string FindTaken(std::set<std::string>& names) const;
  absl::Status CheckDeclarations(const std::string& path) const;

  std::string name_;
  const Module* list_ = nullptr;  // null: the module is in none
  bool added_ = false;            // whether it is, or was, a child
  bool many_tensors_ = false, recomputes_ = false, shares_tokens_ = false;
  std::string wrong_tie_;  // error of the first wrong tie; empty: none
  std::vector<std::pair<std::string, std::shared_ptr<Parameter>>> parameters_;
  std::vector<std::pair<std::string, std::unique_ptr<Buffer>>> buffers_;
  std::vector<std::unique_ptr<Module>> children_;
};

// Shape and dtype of a tensor that does not exist yet.
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
// The same with lists; every input keeps its dtype. Both fail if a stashed
// tensor is never popped.
absl::StatusOr<TensorList> ShapeOnlyForward(Module& module,
                                            absl::Span<const TensorSpec> inputs,
                                            Device device, ShapeRecord& record);
// The same for a part of a model. `stashed` holds, as meta tensors, the stashed
// tensors of the modules before it, and afterwards those for the modules behind
// it.
absl::StatusOr<TensorList> ShapeOnlyForward(Module& module,
                                            absl::Span<const TensorSpec> inputs,
                                            StashedTensors& stashed,
                                            Device device, ShapeRecord& record);

}  // namespace troupe::nn

#endif  // NN_MODULES_MODULE_H_
