// The context that a forward runs in: kernels, tape, mode, and the first error.
//
//   Context ctx(kernels, &tape);
//   Tensor y = model(ctx, x);
//   if (!ctx.ok()) return ctx.status();       // once, at the end
//
// The first error sticks, with the shapes and the path of its module; later ops
// do nothing and return undefined tensors. So a user's model needs no error
// plumbing, and no error is lost.
//
// An op tests before its kernel whether its outputs have memory:
//
//   Tensor y = ctx.Empty("relu", x.shape(), x.dtype());
//   ctx.Note("relu", y, flops);
//   if (!ctx.computes()) return y;            // shape-only, or no memory left
//   status = kernels.ReluForward(x, y);
//
// A *shape-only* forward (ShapeRecord) runs the same code on meta tensors: it
// allocates nothing, checks every shape, and records the order in which
// parameters are used, the outputs and the FLOPs. Plans are made from it.
//
// Random layers draw by a sample's position in the job, whichever rank holds
// it:
//
//   ctx.set_random({seed, step, batch.position});
//   std::optional<SampleDraws> draws = ctx.Random(Purpose::kDropout);
//
// A module may stash a tensor for a later one, of this stage or of another:
//
//   ctx.Stash("skip1", x);
//   Tensor skipped = ctx.Pop("skip1");        // in the later module
//
// A loop of a program's own keeps one context for all its steps: BeginStep()
// between them, and nn/autograd/var.h for what it computes.

#ifndef NN_AUTOGRAD_CONTEXT_H_
#define NN_AUTOGRAD_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nn/autograd/buffer.h"
#include "nn/autograd/parameter.h"
#include "nn/autograd/stashed_tensors.h"
#include "nn/autograd/tape.h"
#include "nn/collectives.h"
#include "nn/kernels/kernels.h"
#include "nn/random/sample_draws.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

// Record of a shape-only forward.
struct ShapeRecord {
  struct Op {
    std::string module;  // path, "3" or "features.0"
    std::string name;    // "linear"
    Shape output;
    DType dtype = DType::kF32;
    double flops = 0;  // forward only; multiply and add count as two
  };
  // Use of a parameter in a module.
  struct Use {
    Parameter* parameter = nullptr;
    std::string module;  // path
  };
  std::vector<Op> ops;
  std::vector<Parameter*> parameters;  // ordered by first use
  std::vector<Use> uses;               // all of them, in their order
  std::vector<Buffer*> buffers;        // ordered by first use
  // Axes of the mesh for which layers requested collectives.
  std::vector<std::string> axes;

  double flops() const;
};

// Position in the job of the forward of one micro-batch.
struct StepPosition {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  std::int64_t sample = 0;  // number of its first sample in the global batch
  // Rank of the program that draws tensors of its own (nn/autograd/create.h).
  // Layers do not use it: they draw by sample.
  std::int64_t rank = 0;
};

// Blocks a forward at a parameter that the optimizer update of the step before
// has not written yet.
class ParameterGate {
 public:
  virtual ~ParameterGate() = default;
  // Blocks until the parameter may be read. An error ends the forward.
  virtual absl::Status AwaitValue(const Parameter& parameter) = 0;
};

class Context;
class KvCache;

// Tensor from which a backward begins: the statistics of a loss
// (nn/ops/loss.h), whose gradients are multiplied by `scale`, or any other,
// with its gradient.
struct BackwardRoot {
  Tensor tensor;
  double scale = 1;
  Tensor seed;  // undefined: a loss
};

// Owner of a context, for functions that get only a Var: the rank of a program
// (troupe/rank.h).
class ContextOwner {
 public:
  virtual ~ContextOwner() = default;
  // Runs Var::Backward() from `root`, which the context's tape tracks, and
  // resets the tape. Returns false, and does nothing, if it leaves that to the
  // Var.
  virtual absl::StatusOr<bool> Backward(Context& /*ctx*/,
                                        const BackwardRoot& /*root*/) {
    return false;
  }
};

class Context {
 public:
  // `tape` null: no gradients (evaluation).
  explicit Context(Kernels& kernels, Tape* tape = nullptr)
      : kernels_(&kernels), tape_(tape) {}
  // Creates a context for a shape-only forward, recorded in `record`.
  Context(Device device, ShapeRecord& record)
      : record_(&record), device_(device) {}

  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }
  // Keeps the first error, with the module path in front. Returns an undefined
  // tensor.
  Tensor Fail(const absl::Status& status);
  // The same in a catch block, for the exception in flight: kInvalidArgument
  // for a base::UsageError, kInternal for others.
  Tensor FailThrown();
  // Throws the error as a base::StatusError. Outside of modules, the context
  // forgets it and can be used again; inside, it keeps the error and its path.
  [[noreturn]] void Throw();

  bool shape_only() const { return record_ != nullptr; }
  // Whether kernels can run: no error so far, and tensors have memory.
  bool computes() const { return ok() && !shape_only(); }
  bool training() const { return training_; }
  void set_training(bool training) { training_ = training; }
  // Whether layers may change their buffers: in training, except when a segment
  // runs a second time to recompute its activations.
  bool updates_buffers() const {
    return training_ && !recomputing_ && !shape_only();
  }
  void set_recomputing(bool recomputing) { recomputing_ = recomputing; }
  bool recomputing() const { return recomputing_; }
  // Throws base::UsageError in a shape-only forward, which has no kernels.
  Kernels& kernels() {
    if (ABSL_PREDICT_FALSE(kernels_ == nullptr)) ThrowNoKernels();
    return *kernels_;
  }
  Tape* tape() { return tape_; }
  void set_tape(Tape* tape) { tape_ = tape; }
  // Sets the receiver of what Var::Backward() computes; null: gradients go to
  // the memory that the parameters have, and nothing is told. Outlives the
  // context.
  void set_sink(GradientSink* sink) { sink_ = sink; }
  GradientSink* sink() { return sink_; }
  // Sets the object that the context belongs to; null: none.
  void set_owner(ContextOwner* owner) { owner_ = owner; }
  ContextOwner* owner() const { return owner_; }
  // Sets the keys and values of tokens that the model has seen
  // (nn/autograd/kv_cache.h), of which the forward has the new ones alone;
  // null: it has all tokens. Outlives the context.
  void set_kv_cache(KvCache* cache) { kv_cache_ = cache; }
  KvCache* kv_cache() const { return kv_cache_; }
  // Sets the list to which trainable parameters are added as they are used;
  // null: none.
  void set_uses(std::vector<Parameter*>* uses) { uses_ = uses; }
  std::vector<Parameter*>* uses() { return uses_; }
  // Sets a gate that is called before a trainable parameter is read; null:
  // none. Outlives the context.
  void set_gate(ParameterGate* gate) { gate_ = gate; }
  Device device() const { return shape_only() ? device_ : kernels_->device(); }

  // Returns this rank's peers along an axis of the mesh. Null if it has no
  // peers, in a shape-only forward, and along dp in an evaluation, where ranks
  // have different numbers of batches.
  Collectives* collectives(absl::string_view axis);
  // `axes` outlives the context.
  void set_collectives(absl::Span<const AxisCollectives> axes) { axes_ = axes; }

  // Returns a parameter's value, as a leaf of the tape. If it has no memory,
  // fails the context and returns an undefined tensor.
  Tensor Use(Parameter& parameter);
  // Returns a buffer's value, a constant; the same if it has no memory.
  Tensor Use(Buffer& buffer);

  // Sets the position of random draws. Without it, layers that draw fail.
  void set_random(const StepPosition& position) { draws_.position = position; }
  const std::optional<StepPosition>& random() const { return draws_.position; }
  // Begins the next step of a loop: draws are those of the next step, and
  // stashed tensors that no module took are forgotten.
  void BeginStep();
  // Step and sample in device memory, which kernels read when they run, for a
  // step that is recorded (DropoutMask::place); undefined: those of
  // set_random().
  void set_random_place(Tensor place) { draws_.place = std::move(place); }
  const Tensor& random_place() const { return draws_.place; }
  // Returns the draws of the present module for `purpose`, keyed by seed, step,
  // sample and module path; a second call in the same forward gives different
  // ones. Returns none, and fails the context, if set_random() was not called.
  std::optional<SampleDraws> Random(Purpose purpose);

  // Returns memory for an output of `op`, or a meta tensor when shape-only. If
  // no memory is left, fails the context with the op's name and returns an
  // undefined tensor.
  Tensor Empty(const char* op, const Shape& shape, DType dtype);
  // Stores `x` under a name that is unique in the model, until a later module
  // pops it, once. The gradient of the popped tensor is added to that of `x`
  // here, in the order of the tape: the bits do not depend on whether the model
  // is cut in between. Modules for it: nn/modules/skip.h.
  void Stash(absl::string_view name, const Tensor& x);
  // Returns the tensor stashed as `name`. If there is none, fails the context
  // with both modules' names and returns an undefined tensor.
  Tensor Pop(absl::string_view name);
  // Stashed tensors that wait to be popped: from earlier stages and for later
  // ones.
  StashedTensors& stashed() { return stashed_; }

  // Adds an op to the shape record; does nothing otherwise.
  void Note(const char* op, const Tensor& output, double flops);
  // Whether backward needs a node with these inputs.
  bool Tracks(absl::Span<const Tensor> inputs) const {
    return tape_ != nullptr && tape_->Tracks(inputs);
  }

  // Module::operator() calls these around Forward().
  void Enter(const std::string& name) { path_.push_back(&name); }
  void Leave() { path_.pop_back(); }
  std::string path() const;
  // Whether a module is being called.
  bool in_module() const { return !path_.empty(); }

 private:
  // Place of the random draws of a step.
  struct Draws {
    std::optional<StepPosition> position;
    Tensor place;  // undefined: `position`
    // hashes of the paths of Random()'s callers
    std::vector<std::uint32_t> drawn;
  };

  [[noreturn]] static void ThrowNoKernels();
  Tensor FailUnbound(const char* kind, const std::string& name);

  Kernels* kernels_ = nullptr;
  Tape* tape_ = nullptr;
  ShapeRecord* record_ = nullptr;
  GradientSink* sink_ = nullptr;
  ContextOwner* owner_ = nullptr;
  std::vector<Parameter*>* uses_ = nullptr;
  ParameterGate* gate_ = nullptr;
  KvCache* kv_cache_ = nullptr;
  Device device_;
  bool training_ = true;
  absl::Span<const AxisCollectives> axes_;
  bool recomputing_ = false;
  Draws draws_;
  StashedTensors stashed_;
  absl::Status status_;
  std::vector<const std::string*> path_;
};

}  // namespace troupe::nn

#endif  // NN_AUTOGRAD_CONTEXT_H_
