// Define-by-run autograd on an explicit tape. A tape belongs to one micro-batch
// of one chunk; a pipeline holds several at once.
//
//   Tape tape;
//   Context ctx(kernels, &tape);
//   Tensor loss = ops::SoftmaxCrossEntropy(ctx, model(ctx, x), targets);
//   BackwardPass backward(tape, kernels, sink, BackwardPass::Mode::kWhole);
//   backward.Seed(loss);                              // d total / d loss = 1
//   while (*backward.Next()) {}                       // or piece by piece
//
// Backward runs in pieces, so that its caller can launch a reduction, update a
// bucket or yield between two of them: the actors' strands, and the simulator,
// interleave at exactly these points. In kWhole a node's weight gradient is
// one piece and comes before its input gradient: the sooner a gradient is
// complete, the sooner its bucket can travel. kInputs, then kWeights, give the
// same numbers as kWhole, bit for bit (zero-bubble schedules, Qi et al. 2023,
// arXiv:2401.10241, sec. 2).
//
// Where a sink takes a gradient by rows (GradientSink::TakesRows), the node's
// input gradient comes first, since it reads the weight. The same bits.
//
// Order of sums: nodes in reverse order of recording. A parameter used several
// times, or by several micro-batches, adds up in that order; but use by use,
// where Parameter::grad_per_use says so.
//
// Two promises are for parameters that ops take as weights. One that an op
// takes as an activation (ops::Add(ctx, x, ctx.Use(p))), or beside a computed
// weight, gets its gradient in the pass over inputs. So with kInputs, then
// kWeights, (a) LastReaderDone() may come before the pass over weights has read
// it, and (b) its gradients may add up in another order than in kWhole.
//
// A view of a tracked tensor (View, Slice, FlatView) is no op and has no
// gradient: an op that is given one of another shape fails.
//
// Threads: one at a time.

#ifndef NN_AUTOGRAD_TAPE_H_
#define NN_AUTOGRAD_TAPE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/autograd/parameter.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

// Where the gradient of one weight goes. `grad` is undefined where it is not
// wanted.
struct WeightGrad {
  Tensor grad;
  bool wanted() const { return grad.defined(); }
};

// One recorded op: what backward needs, and how to run it. `dy` has the shape
// of the op's output. The gradient of a loss's statistics (nn/ops/loss.h) is
// that of their sum, element 0; a `dy` without memory stands for 1, the usual
// seed, so that nobody multiplies by it.
class Node {
 public:
  virtual ~Node() = default;
  virtual const char* name() const = 0;
  // Whether the output is a loss's statistics: backward may begin there without
  // a gradient, and `dy` may be without memory.
  virtual bool is_loss() const { return false; }

  // Fills dx[i] for every activation input with wanted[i]; leaves the others
  // undefined. dx[i] may be a handle to a saved tensor.
  virtual absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                                      absl::Span<const bool> wanted,
                                      absl::Span<Tensor> dx) = 0;

  // Whether this op, which has one activation input, can add that gradient to
  // what other ops gave the input already, in the same pass over memory.
  virtual bool AddsInputGradient() const { return false; }
  // dx = base + that gradient, with the bits of a sum behind BackwardInputs().
  virtual absl::Status BackwardInputOnto(Kernels& kernels, const Tensor& dy,
                                         const Tensor& base, Tensor& dx);

  // Writes (or adds, where `accumulate`) the gradients of the weights.
  virtual absl::Status BackwardWeights(Kernels& kernels, const Tensor& dy,
                                       bool accumulate,
                                       absl::Span<WeightGrad> grads);

  // How many rows of the first weight's gradient are best computed at a time,
  // for whoever uses them while they are in the cache; 0: it is computed whole.
  virtual std::int64_t WeightRows(const Kernels&) const { return 0; }
  // Writes rows [begin, begin + rows.dim(0)) of that gradient, WeightRows() of
  // them or more, with the bits that they have in the whole.
  virtual absl::Status BackwardWeightRows(Kernels& kernels, const Tensor& dy,
                                          std::int64_t begin, Tensor& rows);
};

// Told, during backward, what has become of each parameter. A parameter is
// reported at most once per tape for each of the two.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  // parameter.grad is about to be written and is undefined: gives it memory,
  // or says why there is none.
  virtual absl::Status GradientNeeded(Parameter&) { return absl::OkStatus(); }
  // Whether it takes a gradient, all of which one op computes, by rows and in
  // place of memory for the whole. Then nothing reads parameter.value any more,
  // and TakeRows() may change it.
  virtual bool TakesRows(const Parameter&) { return false; }
  // `rows`: rows [begin, begin + rows.dim(0)) of the gradient, for this call.
  // All of them come, once each, in ascending order.
  virtual absl::Status TakeRows(Parameter& parameter, std::int64_t begin,
                                const Tensor& rows);
  // This tape adds nothing more to parameter.grad.
  virtual void GradientComplete(Parameter& parameter) = 0;
  // No later piece of this tape reads parameter.value (but see (a) above).
  virtual void LastReaderDone(Parameter& parameter) = 0;
};

class Segment;

class Tape {
 public:
  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // A tracked copy of the handle: backward will hold its gradient (InputGrad).
  // What a stage does with the activation that it received. Integers (tokens)
  // have no gradient: they stay constant.
  Tensor Watch(const Tensor& input);
  // The parameter's value as a leaf of this tape.
  Tensor Leaf(Parameter& parameter);

  // Records an op with `num_weights` of its inputs (the last ones) being
  // weights. Returns `output`, tracked if any input is; otherwise drops `node`.
  Tensor Record(std::unique_ptr<Node> node, absl::Span<const Tensor> inputs,
                int num_weights, Tensor output);
  // Records a part of the forward that backward runs again (segment.h), which
  // computed `output` from `x` and these parameters, without a tape.
  Tensor RecordSegment(std::unique_ptr<Segment> segment, const Tensor& x,
                       absl::Span<Parameter* const> parameters, Tensor output);
  // kInvalidArgument, naming `op`, where an input is a view of a tracked tensor
  // and has another shape: Record() must not be called then.
  absl::Status CheckInputs(const char* op,
                           absl::Span<const Tensor> inputs) const;
  // Whether Record() would keep a node with these inputs.
  bool Tracks(absl::Span<const Tensor> inputs) const;
  bool Tracks(const Tensor& input) const;

  // The gradient of a watched input, after a pass that computes inputs;
  // undefined where the loss does not depend on it.
  Tensor InputGrad(const Tensor& watched) const;
  // The same, with zeros where the loss does not depend on it: what a stage
  // sends upstream.
  absl::StatusOr<Tensor> InputGradOrZeros(Kernels& kernels,
                                          const Tensor& watched) const;

  // Forgets everything and becomes a new tape.
  void Reset();

  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  // Parameters that the sink has still to be told of: before backward, those
  // that feed an op of this tape, in order of first use.
  std::vector<Parameter*> parameters() const;

 private:
  friend class BackwardPass;

  struct Value {
    Shape shape;
    Parameter* parameter = nullptr;
    Tensor grad;  // what consumers have given so far
    bool watched = false;
    int uses = 0;          // nodes that add to the gradient
    int uses_left = 0;     // those that have still to
    int readers_left = 0;  // pieces still to read the parameter
  };
  struct RecordedSegment;
  struct Step {
    Step();
    Step(Step&&);
    ~Step();
    std::unique_ptr<Node> node;
    std::unique_ptr<RecordedSegment> segment;     // instead of a node
    absl::InlinedVector<std::int32_t, 4> inputs;  // values; -1 is a constant
    absl::InlinedVector<Shape, 4> weight_shapes;  // of computed weights
    int num_weights = 0;
    bool weights_are_leaves = true;
    std::int32_t output = -1;
    Tensor dy;  // kept between kInputs and kWeights
  };

  std::int32_t NewValue(const Shape& shape);
  bool IsLoss(std::int32_t value) const;
  std::int32_t ValueOf(const Tensor& tensor) const {
    return tensor.tape_ref().tape == serial_ ? tensor.tape_ref().value : -1;
  }

  std::uint32_t serial_;
  std::vector<Value> values_;
  std::vector<Step> nodes_;
};

// Adds the gradients that Parameter::grad_per_use keeps apart, where there are
// any: once a step, when no tape adds more to them.
absl::Status AddUses(Kernels& kernels, Parameter& parameter);

class BackwardPass {
 public:
  enum class Mode { kWhole, kInputs, kWeights };

  BackwardPass(Tape& tape, Kernels& kernels, GradientSink& sink, Mode mode);

  // Where gradients begin: a loss (dy undefined: 1), or a stage's output with
  // the gradient that came from the next stage; once for each output, and where
  // two are one tensor, gradients add up. Not needed in kWeights. Where a
  // shape does not fit, or there is no dy and the output is not a loss, Next()
  // answers kInvalidArgument.
  void Seed(const Tensor& output, const Tensor& dy = Tensor());
  // A loss whose gradients all come out multiplied by `scale` (loss scaling,
  // Micikevicius et al. 2018, arXiv:1710.03740); 1 costs nothing.
  void SeedLoss(const Tensor& loss, double scale);

  // Runs the next piece. False when there was none: the pass is complete.
  // An error names the op; the tape is then of no further use.
  absl::StatusOr<bool> Next();

 private:
  enum class Phase { kWeights, kInputs, kRows };
  // Where the gradient of one use of a parameter goes.
  struct GradPlace {
    Tensor grad;
    bool* written;  // whether something is there, to which it is added
  };
  class SegmentSink;

  bool Enters(const Tape::Step& step) const;
  absl::Status NeedGradient(Parameter& parameter);
  absl::StatusOr<GradPlace> PlaceOf(const Tape::Value& value);
  // Of weights from number `begin` on.
  absl::Status RunWeights(Tape::Step& step, int begin = 0);
  bool GoesByRows(const Tape::Step& step) const;
  absl::Status RunRows(Tape::Step& step);
  absl::Status RunWeightsApart(Tape::Step& step, int begin, const Tensor& dy,
                               absl::Span<WeightGrad> grads);
  absl::Status RunComputedWeights(Tape::Step& step);
  absl::Status RunInputs(Tape::Step& step);
  bool AddsToInput(const Tape::Step& step) const;
  absl::Status RunInputOnto(Tape::Step& step);
  void EndNode(Tape::Step& step);
  absl::Status Give(std::int32_t value, const Tensor& grad);
  absl::Status AddTo(const Tape::Value& value, const Tensor& grad);
  // `grad`, or ones where it has no memory: the gradient of a loss.
  absl::StatusOr<Tensor> WithMemory(const Tensor& grad);
  void UsedWeights(Tape::Step& step);
  void UsedInputs(Tape::Step& step);
  // The next piece of a segment; false when it had none left.
  absl::StatusOr<bool> AdvanceSegment(Tape::Step& step);
  absl::Status EndSegment(Tape::Step& step);
  void FinishSegmentUse(Tape::Step& step, int number);
  void FinishSegmentRead(Tape::Step& step, int number);
  void FinishUse(std::int32_t value);
  void FinishRead(std::int32_t value);

  Tape& tape_;
  Kernels& kernels_;
  GradientSink& sink_;
  const Mode mode_;
  int next_;
  Phase phase_;
  absl::Status seeded_;
  // The pass of the segment that this pass is in, and its sink.
  std::unique_ptr<GradientSink> inner_sink_;
  std::unique_ptr<BackwardPass> inner_;
};

}  // namespace troupe::nn

#endif  // NN_AUTOGRAD_TAPE_H_
