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
// A *shape-only* forward (ShapeRecord) runs the same code on meta tensors: it
// allocates nothing, checks every shape, and records the order in which
// parameters are used, the outputs and the FLOPs. Plans are made from it.

#ifndef NN_AUTOGRAD_CONTEXT_H_
#define NN_AUTOGRAD_CONTEXT_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nn/autograd/parameter.h"
#include "nn/autograd/tape.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

// What a shape-only forward saw.
struct ShapeRecord {
  struct Op {
    std::string module;  // path, "3" or "features.0"
    std::string name;    // "linear"
    Shape output;
    double flops = 0;  // of the forward; multiply and add count as two
  };
  std::vector<Op> ops;
  std::vector<Parameter*> parameters;  // in order of first use

  double flops() const;
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

  bool shape_only() const { return record_ != nullptr; }
  bool training() const { return training_; }
  void set_training(bool training) { training_ = training; }
  Kernels& kernels() { return *kernels_; }
  Tape* tape() { return tape_; }
  Device device() const { return shape_only() ? device_ : kernels_->device(); }

  // A parameter's value, as a leaf of the tape.
  Tensor Use(Parameter& parameter);
  // An output of an op: memory, or a meta tensor when shape-only.
  Tensor Empty(const Shape& shape, DType dtype);
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
  Kernels* kernels_ = nullptr;
  Tape* tape_ = nullptr;
  ShapeRecord* record_ = nullptr;
  Device device_;
  bool training_ = true;
  absl::Status status_;
  std::vector<const std::string*> path_;
};

}  // namespace troupe::nn

#endif  // NN_AUTOGRAD_CONTEXT_H_
