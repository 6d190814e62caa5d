// The graphs of a rank's training steps: one for each of the first kGraphsMax
// shapes that its batches have. A graph is recorded while the engine walks a
// step, and launched for every later step of that shape
// (nn/kernels/device_graph.h).
//
//   StepGraphs graphs(kernels, options);
//   const StepGraphs::Way way = graphs.Next(batches);
//   TROUPE_ASSIGN_OR_RETURN(StepBatches placed, graphs.Place(step, batches));
//   Begin(placed);                            // sets scalars, unrecorded
//   if (way == StepGraphs::Way::kCapture) graphs.Capture(Walk);
//   TROUPE_RETURN_IF_ERROR(graphs.Launch());
//
// Values that change from step to step are at fixed addresses, from which the
// graph reads them: batches and draws in GraphInputs, learning rate and step in
// the step's scalars. A step that cannot be recorded runs one op after the
// other, and so do all later ones of its shape. That is reported once
// (Options::note) and is no error.
//
// Threads: one at a time.

#ifndef ACTORS_ENGINE_RECORDING_STEP_GRAPH_H_
#define ACTORS_ENGINE_RECORDING_STEP_GRAPH_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/step/step_types.h"
#include "actors/engine/recording/graph_choice.h"
#include "actors/engine/recording/graph_inputs.h"
#include "nn/kernels/device_graph.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class StepGraphs {
 public:
  using Way = GraphChoice::Way;
  // The statistics of a step's losses, by micro-batch.
  using Losses = std::vector<std::pair<int, nn::Tensor>>;

  // Limit on the shapes that have a graph, each with memory of its own.
  static constexpr int kGraphsMax = 4;

  struct Options {
    bool measure = true;                // keep a graph only if it is not slower
    nn::DType dtype = nn::DType::kF32;  // loaded floats are converted to it
    // Takes a line that says what was decided, or why nothing is recorded. May
    // be null.
    std::function<void(const std::string& line)> note;
  };

  // `kernels` has queues, and outlives it.
  StepGraphs(nn::Kernels& kernels, Options options)
      : kernels_(kernels), options_(std::move(options)) {}

  // Returns how a step with these batches runs. All methods below apply to the
  // shape of these batches.
  Way Next(const StepBatches& batches);
  // Does the same as GraphInputs::Place().
  absl::StatusOr<StepBatches> Place(std::int64_t step,
                                    const StepBatches& batches);
  // Returns GraphInputs::draws(). Call it after Place().
  const nn::Tensor& draws() const { return now_->inputs.draws(); }

  // Records the work that `walk` enqueues. If that fails, returns false, and
  // steps of this shape are eager from now on.
  bool Capture(const std::function<absl::Status()>& walk);
  // Makes later steps of this shape eager and reports `why`. If that is
  // kUnimplemented, later steps of all shapes are eager.
  void Refuse(const absl::Status& why);
  absl::Status Launch() { return now_->graph->Launch(); }
  void KeepLosses(Losses losses) { now_->losses = std::move(losses); }
  // Returns the tensors into which each launch writes its losses.
  const Losses& losses() const { return now_->losses; }
  // Starts the clock of a step, if the step is to be timed.
  void BeginStep(Way way);
  // Counts the step and stops its clock. `way`: how it ran in the end.
  void EndStep(Way way);

 private:
  struct Shape {
    Shape(bool measure, GraphInputs inputs)
        : choice(measure), inputs(std::move(inputs)) {}
    GraphChoice choice;
    GraphInputs inputs;
    std::unique_ptr<nn::DeviceGraph> graph;
    Losses losses;
  };
  // A step whose time is not known yet.
  struct Timed {
    Shape* shape;
    Way way;
    std::unique_ptr<nn::DeviceMoment> begin, end;
  };

  Shape* ShapeOf(const StepBatches& batches);
  absl::StatusOr<std::unique_ptr<nn::DeviceGraph>> Record(
      const std::function<absl::Status()>& walk);
  void Tell(const std::string& line) const {
    if (options_.note) options_.note(line);
  }
  void CollectTimes();

  nn::Kernels& kernels_;
  const Options options_;
  std::vector<std::unique_ptr<Shape>> shapes_;
  Shape* now_ = nullptr;  // shape of the present step; null: always eager
  bool refused_ = false;  // whether the device cannot record at all
  std::unique_ptr<nn::DeviceMoment> begin_;
  std::deque<Timed> timed_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_RECORDING_STEP_GRAPH_H_
