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
// interleave at exactly these points. In kWhole a node's weight gradient is one
// piece and comes before its input gradient: the sooner a gradient is complete,
// the sooner its bucket can be reduced. kInputs, then kWeights, give the same
// numbers as kWhole, bit for bit (zero-bubble schedules, Qi et al. 2023,
// arXiv:2401.10241, sec. 2).
//
// If a sink takes a gradient by rows (GradientSink::TakesRows), the node's
// input gradient comes first, since it reads the weight. The bits are the same.
//
// Order of sums: nodes in reverse order of recording. The gradients of a
// parameter used several times, or by several micro-batches, add up in that
// order, or use by use if FirstUse::apart is set.
//
// Two promises hold only for parameters that ops take as weights. A parameter
// that an op takes as an activation (ops::Add(ctx, x, ctx.Use(p))), or beside a
// computed weight, gets its gradient in the pass over inputs. So with kInputs,
// then kWeights, (a) LastReaderDone() may be called before the pass over
// weights has read it, and (b) its gradients may add up in another order than
// in kWhole.
//
// A view of a tracked tensor (View, Slice, FlatView) is no op and has no
// gradient: an op fails if it gets one of another shape.
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

// Destination of the gradient of one weight. `grad` is undefined if it is not
// wanted.
struct WeightGrad {
  Tensor grad;
  bool wanted() const { return grad.defined(); }
};

// One recorded op: the tensors that backward needs, and how to run it. `dy` has
// the shape of the op's output. The gradient of a loss's statistics
// (nn/ops/loss.h) is that of their sum, element 0; a `dy` without memory stands
// for 1, the usual seed, which saves the multiplication.
class Node {
 public:
  virtual ~Node() = default;
  virtual const char* name() const = 0;
  // Whether the output is a loss's statistics: backward may begin here without
  // a gradient, and `dy` may be without memory.
  virtual bool is_loss() const { return false; }

  // Fills dx[i] for every activation input with wanted[i]; leaves the others
  // undefined. dx[i] may be a handle to a saved tensor.
  virtual absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                                      absl::Span<const bool> wanted,
                                      absl::Span<Tensor> dx) = 0;

  // Whether this op, which has one activation input, can add its gradient to
  // the one that other ops have computed already, in the same pass over memory.
  virtual bool AddsInputGradient() const { return false; }
  // Computes dx = base + that gradient, with the bits of BackwardInputs() and a
  // sum.
  virtual absl::Status BackwardInputOnto(Kernels& kernels, const Tensor& dy,
                                         const Tensor& base, Tensor& dx);

  // Writes (or adds, where `accumulate`) the gradients of the weights.
  virtual absl::Status BackwardWeights(Kernels& kernels, const Tensor& dy,
                                       bool accumulate,
                                       absl::Span<WeightGrad> grads);

  // Number of rows of the first weight's gradient that are best computed at a
  // time, for a sink that uses them while they are in the cache; 0: computed
  // whole.
  virtual std::int64_t WeightRows(const Kernels&) const { return 0; }
  // Writes rows [begin, begin + rows.dim(0)) of that gradient, WeightRows() of
  // them or more, with the same bits as in the whole.
  virtual absl::Status BackwardWeightRows(Kernels& kernels, const Tensor& dy,
                                          std::int64_t begin, Tensor& rows);
};

// Receives, during backward, the progress of each parameter. Each of the last
// two functions is called at most once per tape for a parameter.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  // Called before parameter.grad is written if it is undefined: gives it
  // memory, or returns an error.
  virtual absl::Status GradientNeeded(Parameter&) { return absl::OkStatus(); }
  // Called before each piece that reads parameter.value, so more than once for
  // some parameters: returns once it may be read. An error ends the backward.
  virtual absl::Status ValueNeeded(Parameter&) { return absl::OkStatus(); }
  // Whether it takes a gradient, if one op computes all of it, by rows instead
  // of in memory for the whole. Then nothing reads parameter.value any more,
  // and TakeRows() may change it.
  virtual bool TakesRows(const Parameter&) { return false; }
  // Takes `rows`, rows [begin, begin + rows.dim(0)) of the gradient, valid for
  // this call. Every row is passed once, in ascending order.
  virtual absl::Status TakeRows(Parameter& parameter, std::int64_t begin,
                                const Tensor& rows);
  // Called when this tape adds nothing more to parameter.grad.
  virtual void GradientComplete(Parameter& parameter) = 0;
  // Called when no later piece of this tape reads parameter.value (but see (a)
  // above).
  virtual void LastReaderDone(Parameter& parameter) = 0;
};

class Segment;

class Tape {
 public:
  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // Returns a tracked copy of the handle: backward will hold its gradient
  // (InputGrad). A stage watches the activation that it received. Integers
  // (tokens) have no gradient: they stay constant.
  Tensor Watch(const Tensor& input);
  // Returns the parameter's value as a leaf of this tape.
  Tensor Leaf(Parameter& parameter);

  // Records an op, the last `num_weights` of whose inputs are weights. Returns
  // `output`, tracked if any input is; otherwise drops `node`.
  Tensor Record(std::unique_ptr<Node> node, absl::Span<const Tensor> inputs,
                int num_weights, Tensor output);
  // Records a part of the forward that backward runs again (segment.h), which
  // computed `output` from `x` and these parameters, without a tape.
  Tensor RecordSegment(std::unique_ptr<Segment> segment, const Tensor& x,
                       absl::Span<Parameter* const> parameters, Tensor output);
  // Returns kInvalidArgument, naming `op`, if an input is a view of a tracked
  // tensor with another shape: Record() must not be called then.
  absl::Status CheckInputs(const char* op,
                           absl::Span<const Tensor> inputs) const;
  // Whether Record() would keep a node with these inputs.
  bool Tracks(absl::Span<const Tensor> inputs) const;
  bool Tracks(const Tensor& input) const;

  // Returns the gradient of a watched input, after a pass that computes inputs;
  // undefined if the loss does not depend on it.
  Tensor InputGrad(const Tensor& watched) const;
  // The same, with zeros if the loss does not depend on it: the gradient that a
  // stage sends upstream.
  absl::StatusOr<Tensor> InputGradOrZeros(Kernels& kernels,
                                          const Tensor& watched) const;

  // Clears the tape, which becomes a new one.
  void Reset();

  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  // Returns the number of the node whose backward runs now, in the order of
  // recording, for profilers; -1 outside of one.
  int running_node() const { return running_; }
  // Parameters whose completion the sink has not been notified of: before
  // backward, those that feed an op of this tape, in order of first use.
  std::vector<Parameter*> parameters() const;

  // The values of a tape that a backward goes through.
  class Reach {
   public:
    bool Has(const TapeRef& ref) const {
      return ref.tape == serial_ && ref.value >= 0 && values_[ref.value];
    }

   private:
    friend class Tape;
    std::uint32_t serial_ = 0;
    std::vector<bool> values_;
  };
  // Returns what a backward from `output` would go through.
  Reach ReachOf(const Tensor& output) const;

 private:
  friend class BackwardPass;

  struct Value {
    Shape shape;
    Parameter* parameter = nullptr;
    Tensor grad;  // sum of the consumers' gradients so far
    bool watched = false;
    int uses = 0;          // nodes that add to the gradient
    int uses_left = 0;     // nodes that have not added yet
    int readers_left = 0;  // pieces that have not read the parameter yet
  };
  struct RecordedSegment;
  struct Step {
    Step();
    Step(Step&&);
    ~Step();
    std::unique_ptr<Node> node;
    std::unique_ptr<RecordedSegment> segment;  // instead of a node
    // indices of values; -1 is a constant
    absl::InlinedVector<std::int32_t, 4> inputs;
    absl::InlinedVector<Shape, 4> weight_shapes;  // for computed weights
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
  int running_ = -1;  // see running_node()
};

// Adds the gradients that FirstUse::apart keeps apart, if there are
// any: once a step, when no tape adds more to them.
absl::Status AddUses(Kernels& kernels, Parameter& parameter);

class BackwardPass {
 public:
  enum class Mode { kWhole, kInputs, kWeights };

  BackwardPass(Tape& tape, Kernels& kernels, GradientSink& sink, Mode mode);

  // Sets where gradients begin: at a loss (dy undefined: 1), or at a stage's
  // output with the gradient from the next stage. Call it once for each output;
  // if two are one tensor, gradients add up. Not needed in kWeights. If a shape
  // does not fit, or dy is undefined and the output is not a loss, Next()
  // returns kInvalidArgument.
  void Seed(const Tensor& output, const Tensor& dy = Tensor());
  // Seeds a loss so that all gradients are multiplied by `scale` (loss scaling,
  // Micikevicius et al. 2018, arXiv:1710.03740); 1 costs nothing.
  void SeedLoss(const Tensor& loss, double scale);

  // Runs the next piece. Returns false if none was left: the pass is complete.
  // An error names the op; the tape cannot be used any further.
  absl::StatusOr<bool> Next();

 private:
  enum class Phase { kWeights, kInputs, kRows };
  // Destination of the gradient of one use of a parameter.
  struct GradPlace {
    Tensor grad;
    bool* written;  // whether `grad` has a value, to which is added
  };
  class SegmentSink;

  bool Enters(const Tape::Step& step) const;
  absl::Status NeedGradient(Parameter& parameter);
  absl::StatusOr<GradPlace> PlaceOf(const Tape::Value& value);
  // Computes the gradients of the weights from number `begin` on.
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
  // Returns `grad`, or ones if it has no memory: the gradient of a loss.
  absl::StatusOr<Tensor> WithMemory(const Tensor& grad);
  void UsedWeights(Tape::Step& step);
  void UsedInputs(Tape::Step& step);
  // Runs the next piece of a segment; false if it had none left.
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
  // The pass over the segment that this pass is in, and its sink.
  std::unique_ptr<GradientSink> inner_sink_;
  std::unique_ptr<BackwardPass> inner_;
};

}  // namespace troupe::nn

#endif  // NN_AUTOGRAD_TAPE_H_
