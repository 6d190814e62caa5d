// What a forward runs in: kernels, tape, mode, and the first error.
//
//   Context ctx(kernels, &tape);
//   Tensor y = model(ctx, x);
//   if (!ctx.ok()) return ctx.status();       // once, at the end
//
// The first error sticks, with the path of the module it arose in and the
// shapes; later ops do nothing and return undefined tensors. So a user's model
// needs no error plumbing, and no error is lost.
//
// An op on the way to its kernel asks whether its outputs have memory:
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
// Random layers draw by where a sample stands in the job, not by who holds it:
//
//   ctx.set_random({seed, step, batch.position});
//   std::optional<SampleDraws> draws = ctx.Random(Purpose::kDropout);
//
// A module may put a tensor aside for a later one, of this stage or of another:
//
//   ctx.Stash("skip1", x);
//   Tensor skipped = ctx.Pop("skip1");        // in the later module

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

// What a shape-only forward saw.
struct ShapeRecord {
  struct Op {
    std::string module;  // path, "3" or "features.0"
    std::string name;    // "linear"
    Shape output;
    DType dtype = DType::kF32;
    double flops = 0;  // of the forward; multiply and add count as two
  };
  std::vector<Op> ops;
  std::vector<Parameter*> parameters;  // in order of first use
  std::vector<Buffer*> buffers;        // in order of first use
  // Axes of the mesh along which layers asked for collectives.
  std::vector<std::string> axes;

  double flops() const;
};

// Where in the job a forward of one micro-batch stands.
struct StepPosition {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  std::int64_t sample = 0;  // number of its first sample in the global batch
};

// Holds a forward up where it comes to a parameter that an update of the step
// before has not reached yet.
class ParameterGate {
 public:
  virtual ~ParameterGate() = default;
  // Returns when the parameter may be read. An error ends the forward.
  virtual absl::Status AwaitValue(const Parameter& parameter) = 0;
};

class Context {
 public:
  // `tape` null: no gradients (evaluation).
  explicit Context(Kernels& kernels, Tape* tape = nullptr)
      : kernels_(&kernels), tape_(tape) {}
  // Shape-only, into `record`.
  Context(Device device, ShapeRecord& record)
      : record_(&record), device_(device) {}

  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }
  // Keeps the first error, with the module path in front. Returns undefined.
  Tensor Fail(const absl::Status& status);
  // The same in a catch block, with what was caught: kInvalidArgument for a
  // base::UsageError, kInternal for others.
  Tensor FailThrown();

  bool shape_only() const { return record_ != nullptr; }
  // Whether there is something for a kernel to do: no error, and real memory.
  bool computes() const { return ok() && !shape_only(); }
  bool training() const { return training_; }
  void set_training(bool training) { training_ = training; }
  // Whether layers may change their buffers: in training, and not where a
  // segment runs a second time for its activations.
  bool updates_buffers() const {
    return training_ && !recomputing_ && !shape_only();
  }
  void set_recomputing(bool recomputing) { recomputing_ = recomputing; }
  bool recomputing() const { return recomputing_; }
  // Throws base::UsageError in a shape-only forward, which has none.
  Kernels& kernels() {
    if (ABSL_PREDICT_FALSE(kernels_ == nullptr)) ThrowNoKernels();
    return *kernels_;
  }
  Tape* tape() { return tape_; }
  void set_tape(Tape* tape) { tape_ = tape; }
  // Where trainable parameters are noted as they are used; null: nowhere.
  void set_uses(std::vector<Parameter*>* uses) { uses_ = uses; }
  std::vector<Parameter*>* uses() { return uses_; }
  // Asked before a trainable parameter is read; null: nobody. Outlives the
  // context.
  void set_gate(ParameterGate* gate) { gate_ = gate; }
  Device device() const { return shape_only() ? device_ : kernels_->device(); }

  // This rank's peers along an axis of the mesh. Null where it has none, in a
  // shape-only forward, and along dp in an evaluation, where ranks have
  // different numbers of batches.
  Collectives* collectives(absl::string_view axis);
  // `axes` outlives the context.
  void set_collectives(absl::Span<const AxisCollectives> axes) { axes_ = axes; }

  // A parameter's value, as a leaf of the tape. Undefined, and the context has
  // failed, where it has no memory.
  Tensor Use(Parameter& parameter);
  // A buffer's value, a constant; likewise.
  Tensor Use(Buffer& buffer);

  // Without it, layers that draw fail.
  void set_random(const StepPosition& position) { random_ = position; }
  // Step and sample as kernels find them when they run, in a step that is
  // recorded (DropoutMask::place); undefined: as set_random() has them.
  void set_random_place(Tensor place) { random_place_ = std::move(place); }
  const Tensor& random_place() const { return random_place_; }
  // The draws of the present module for `purpose`, keyed by seed, step, sample
  // and module path; when it asks again in the same forward, others. Nothing,
  // and a failed context, where set_random() was not called.
  std::optional<SampleDraws> Random(Purpose purpose);

  // An output of `op`: memory, or a meta tensor when shape-only. Undefined, and
  // the context has failed with the op's name, where there is no memory left.
  Tensor Empty(const char* op, const Shape& shape, DType dtype);
  // Puts `x` aside under a name that nothing else in the model has, until a
  // later module pops it, once. The gradient of what is popped is added to that
  // of `x` here, in the order of the tape: the bits are those of a model that
  // is not cut in between. Modules that do it: nn/modules/skip.h.
  void Stash(absl::string_view name, const Tensor& x);
  // Undefined, and the context has failed with both modules' names, where there
  // is none.
  Tensor Pop(absl::string_view name);
  // What waits to be popped: from stages before, and for those behind.
  StashedTensors& stashed() { return stashed_; }

  // Notes an op in the shape record; does nothing otherwise.
  void Note(const char* op, const Tensor& output, double flops);
  // Whether backward will want a node with these inputs.
  bool Tracks(absl::Span<const Tensor> inputs) const {
    return tape_ != nullptr && tape_->Tracks(inputs);
  }

  // Module::operator() calls these around Forward().
  void Enter(const std::string& name) { path_.push_back(&name); }
  void Leave() { path_.pop_back(); }
  std::string path() const;

 private:
  [[noreturn]] static void ThrowNoKernels();
  Tensor FailUnbound(const char* kind, const std::string& name);

  Kernels* kernels_ = nullptr;
  Tape* tape_ = nullptr;
  ShapeRecord* record_ = nullptr;
  std::vector<Parameter*>* uses_ = nullptr;
  ParameterGate* gate_ = nullptr;
  Device device_;
  bool training_ = true;
  absl::Span<const AxisCollectives> axes_;
  bool recomputing_ = false;
  std::optional<StepPosition> random_;
  Tensor random_place_;
  std::vector<std::uint32_t> drawn_;  // hashes of the paths that asked
  StashedTensors stashed_;
  absl::Status status_;
  std::vector<const std::string*> path_;
};

}  // namespace troupe::nn

#endif  // NN_AUTOGRAD_CONTEXT_H_
