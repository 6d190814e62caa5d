// The graphs of a rank's training steps: one for each of the first few shapes
// that its batches have, recorded from a step as the engine walks it, launched
// for every later step of that shape (nn/kernels/device_graph.h).
//
//   StepGraphs graphs(kernels, options);
//   const StepGraphs::Way way = graphs.Next(batches);
//   TROUPE_ASSIGN_OR_RETURN(StepBatches placed, graphs.Place(step, batches));
//   Begin(placed);                            // sets scalars: not recorded
//   if (way == StepGraphs::Way::kCapture) graphs.Capture(Walk);
//   TROUPE_RETURN_IF_ERROR(graphs.Launch());
//
// What changes from step to step lies where the graph reads it: batches and
// draws in GraphInputs, learning rate and step in the step's scalars. A step
// that cannot be recorded is run one op after the other, as all later ones of
// its shape; that is told once, and no error.
//
// Threads: one at a time.

#ifndef ACTORS_ENGINE_STEP_GRAPH_H_
#define ACTORS_ENGINE_STEP_GRAPH_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/step_types.h"
#include "actors/engine/graph_choice.h"
#include "actors/engine/graph_inputs.h"
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
    bool measure = true;  // keep a graph only where it is not slower
    nn::DType dtype = nn::DType::kF32;  // what loaded floats become
    // Told in a line what was chosen, or why nothing is recorded. May be null.
    std::function<void(const std::string& line)> note;
  };

  // `kernels` has queues, and outlives it.
  StepGraphs(nn::Kernels& kernels, Options options)
      : kernels_(kernels), options_(std::move(options)) {}

  // How a step with these batches runs; what follows is about its shape.
  Way Next(const StepBatches& batches);
  // As GraphInputs::Place().
  absl::StatusOr<StepBatches> Place(std::int64_t step,
                                    const StepBatches& batches);
  // As GraphInputs::draws(), after Place().
  const nn::Tensor& draws() const { return now_->inputs.draws(); }

  // Records what `walk` gives the device. Where that fails: false, and steps of
  // this shape are eager from now on.
  bool Capture(const std::function<absl::Status()>& walk);
  // Steps of this shape are eager from now on.
  void Refuse(const absl::Status& why);
  absl::Status Launch() { return now_->graph->Launch(); }
  void KeepLosses(Losses losses) { now_->losses = std::move(losses); }
  // Where each launch leaves them.
  const Losses& losses() const { return now_->losses; }
  // Around a step, for its time.
  void BeginStep(Way way);
  // `way`: how it ran in the end.
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
  // A step whose time is on its way.
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
  Shape* now_ = nullptr;  // of the step that runs; null: has no graph
  bool refused_ = false;  // the device records nothing
  std::unique_ptr<nn::DeviceMoment> begin_;
  std::deque<Timed> timed_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_STEP_GRAPH_H_
