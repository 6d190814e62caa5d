// One rank of a program: its number, its context, its groups, and tensors on
// its device. Spawn() (troupe/program.h) makes one for each rank and passes it
// to the program.
//
//   void Run(Rank& rank) {
//     Var x = rank.Randn({20, 10});              // other numbers on each rank
//     Var y = rank.Full({1}, rank.number());
//     rank.world().AllReduce(y);
//     rank.Print("the sum is %g\n", y.item());   // "[1] the sum is 6"
//     rank.Log("only rank 0 says this\n");
//     auto no_grad = rank.NoGrad();              // to the end of the block
//   }
//
// The context records for Backward() (nn/autograd/var.h), and draws are keyed
// by seed, rank and step: BeginStep() begins the next one.
//
// Errors: base::StatusError.
// Threads: the rank's own. A Rank, its groups and its tensors end with its
// program.

#ifndef TROUPE_RANK_H_
#define TROUPE_RANK_H_

#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "actors/program/program_rank.h"
#include "nn/autograd/context.h"
#include "nn/autograd/create.h"
#include "nn/autograd/guards.h"
#include "nn/autograd/tape.h"
#include "nn/autograd/var.h"
#include "nn/kernels/kernels.h"
#include "nn/modules/module.h"
#include "pipeline/mesh.h"
#include "troupe/group.h"
#include "troupe/loader.h"

namespace troupe {

using nn::DType;
using nn::Shape;

class DeviceLines;      // troupe/devices/device_line.h
class LayerAxes;        // troupe/internal/layer_axes.h
class ModelCore;        // troupe/internal/model_core.h
class OpRecorder;       // troupe/profile/op_recorder.h
class OptimizableCore;  // troupe/internal/optimizable_core.h

template <typename M>
class Model;  // troupe/model.h

template <typename T>
inline constexpr bool kIsUniquePtr = false;
template <typename T>
inline constexpr bool kIsUniquePtr<std::unique_ptr<T>> = true;

class Rank : public nn::ContextOwner {
 public:
  // Called by Spawn(). `devices`: those of the rank beside its own, for a
  // DataParallel; null: it has none. A strand whose number is not in the mesh
  // is such a device, and alone in its world.
  Rank(actors::ProgramRank& strand, std::shared_ptr<nn::Kernels> kernels,
       std::uint64_t seed, const pipeline::Mesh& mesh,
       DeviceLines* devices = nullptr);
  ~Rank() override;
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  int number() const { return strand_.rank(); }
  int size() const { return mesh_.size(); }
  // Seed of the program, the same on all ranks.
  std::uint64_t seed() const { return seed_; }

  // The group of all ranks.
  Group& world() { return *world_; }
  // Returns the group of the ranks that differ from this one along an axis of
  // the mesh alone ("dp"). All of them call it, the first time in the same
  // order.
  Group& Axis(absl::string_view axis);
  // Makes a group of these ranks, which all call it (new_group); others need
  // not.
  Group& NewGroup(const std::vector<int>& ranks,
                  CallPlace place = CallPlace::Here());

  nn::Context& context() { return context_; }
  nn::Kernels& kernels() { return *kernels_; }
  const std::shared_ptr<nn::Kernels>& shared_kernels() const {
    return kernels_;
  }
  // Whether the context records for Backward(): no NoGrad() holds.
  bool records() { return context_.tape() != nullptr; }
  const pipeline::Mesh& mesh() const { return mesh_; }
  actors::ProgramRank& strand() { return strand_; }
  DeviceLines* devices() { return devices_; }
  // The rank as a DataLoader takes it: its samples are those of its place along
  // dp.
  operator LoaderEnv();
  // Return a model of a module that is made from the arguments, or is there
  // already (troupe/model.h).
  template <typename M, typename... Args>
  Model<M> Make(Args&&... args);
  template <typename M>
  Model<M> Place(std::unique_ptr<M> module);
  // Anything else is a compile error that says what to write.
  template <typename F, std::enable_if_t<!kIsUniquePtr<F>, int> = 0,
            typename M = nn::Module>
  Model<M> Place(F&&) {
    static_assert(kIsUniquePtr<F>,
                  "Place() takes a std::unique_ptr of a module: "
                  "rank.Place(std::make_unique<MyNet>()); take it out of a "
                  "StatusOr: rank.Place(nn::MakeLeNet({28, 28, 1}, 10, "
                  "{}).value()); or write rank.Make<MyNet>()");
    return Place(std::unique_ptr<M>());
  }
  // Begins a step: random draws are those of the next one.
  void BeginStep() { context_.BeginStep(); }

  // Modes until the end of a block (nn/autograd/guards.h).
  nn::NoGrad NoGrad() { return nn::NoGrad(context_); }
  nn::Evaluating Evaluating() { return nn::Evaluating(context_); }

  // New tensors (nn/autograd/create.h).
  Var Zeros(const Shape& shape, DType dtype = DType::kF32) {
    return nn::Zeros(context_, shape, dtype);
  }
  Var Ones(const Shape& shape, DType dtype = DType::kF32) {
    return nn::Ones(context_, shape, dtype);
  }
  Var Full(const Shape& shape, double value, DType dtype = DType::kF32) {
    return nn::Full(context_, shape, value, dtype);
  }
  Var Arange(double begin, double end, double step = 1,
             DType dtype = DType::kF32) {
    return nn::Arange(context_, begin, end, step, dtype);
  }
  Var Rand(const Shape& shape, DType dtype = DType::kF32) {
    return nn::Rand(context_, shape, dtype);
  }
  Var Randn(const Shape& shape, DType dtype = DType::kF32) {
    return nn::Randn(context_, shape, dtype);
  }
  Var Randint(std::int64_t low, std::int64_t high, const Shape& shape) {
    return nn::Randint(context_, low, high, shape);
  }

  // Writes to standard output as a whole, behind the rank's number; Log() on
  // rank 0 alone, and without it.
  template <typename... Args>
  void Print(const absl::FormatSpec<Args...>& format, const Args&... args) {
    Write(absl::StrFormat("[%d] ", number()) +
          absl::StrFormat(format, args...));
  }
  template <typename... Args>
  void Log(const absl::FormatSpec<Args...>& format, const Args&... args) {
    if (number() == 0) Write(absl::StrFormat(format, args...));
  }

  // Records what the rank does, for a Profiler (troupe/profiler.h).
  OpRecorder& recorder() { return *recorder_; }

  // For models (troupe/model.h): Var::Backward() is that of the models whose
  // parameters it uses.
  void AddModel(ModelCore* model) { models_.push_back(model); }
  void RemoveModel(ModelCore* model);
  // All models, in the order in which they were made.
  const std::vector<ModelCore*>& models() const { return models_; }
  // Whether a model is under Join() (troupe/join.h).
  bool joins() const;
  absl::StatusOr<bool> Backward(nn::Context& ctx,
                                const nn::BackwardRoot& root) override;
  // Gives layers the collectives of the axis dp, for synchronised norms.
  void ConnectLayers();

  // Keeps a model whose reductions are under way until Finish() or Abandon().
  void FinishLater(std::unique_ptr<OptimizableCore> model);

  // Waits for all that was started in its groups; Spawn() calls it at the
  // program's end.
  void Finish();
  // Ends the reductions of models that were given to FinishLater(), after the
  // program has failed with `why`.
  void Abandon(const absl::Status& why);

 private:
  Group& AddGroup(const std::vector<int>& ranks);
  static void Write(const std::string& text);

  actors::ProgramRank& strand_;
  const std::shared_ptr<nn::Kernels> kernels_;
  const std::uint64_t seed_;
  const pipeline::Mesh mesh_;
  DeviceLines* const devices_;
  nn::Tape tape_;
  nn::Context context_;
  const std::unique_ptr<OpRecorder> recorder_;
  std::deque<Group> groups_;  // the first is the world
  Group* world_ = nullptr;
  std::vector<ModelCore*> models_;
  std::unique_ptr<LayerAxes> layers_;  // null: layers have no peers
  std::vector<Group*> axes_;           // indexed by axis; null: not made yet
  std::vector<std::unique_ptr<OptimizableCore>> ended_;
};

// Waits until all ranks have come.
inline void Barrier(Rank& rank, CallPlace place = CallPlace::Here()) {
  rank.world().Barrier(place);
}

}  // namespace troupe

#endif  // TROUPE_RANK_H_
