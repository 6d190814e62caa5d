// A model on a rank's device, for loops of one's own.
//
//   struct Toy : nn::Net {
//     nn::Linear& first = Add<nn::Linear>("first", 10, 10);
//     nn::Linear& second = Add<nn::Linear>("second", 10, 5);
//     Var Forward(Var x) override { return second(first(x).Relu()); }
//   };
//   auto model = rank.Make<Toy>();              // model.to(rank)
//   Sgd sgd(model, {/*lr=*/0.1});
//   sgd.ZeroGrad();
//   Var loss = nn::MeanSquaredError(model(x), y);
//   loss.Backward();
//   AverageGradients(model);                    // or DDP (troupe/ddp.h)
//   sgd.Step();
//
// Parameters and buffers get memory here, in buckets in reverse order of their
// declaration, and initial values drawn by the program's seed and their names:
// the same on all ranks. Gradients are those of the loss's mean, as in PyTorch.
// Backward() begins by waiting for reductions under way.
//
// A loss may depend on the parameters of several models, as a GAN's generator
// loss does: each of them gets its gradients, as in PyTorch, and each DDP of
// them reduces its own. ZeroGrad() discards those that nobody wants.
//
// Errors: base::StatusError. A loss of parameters of several models is refused
// if one of them has exact_mean, or if some are under Join() and others not.
// Threads: the rank's own. A model ends before its Rank.

#ifndef TROUPE_MODEL_H_
#define TROUPE_MODEL_H_

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "nn/autograd/parameter.h"
#include "nn/autograd/var.h"
#include "nn/modules/module.h"
#include "troupe/rank.h"
#include "troupe/state.h"

namespace troupe {

class ModelCore;        // troupe/internal/model_core.h
class OptimizableCore;  // troupe/internal/optimizable_core.h

// Whether a program in PyTorch's words gives an M where a model is needed.
template <typename M>
inline constexpr bool kTakenForAModel = std::is_base_of_v<nn::Module, M>;
template <typename M>
inline constexpr bool kTakenForAModel<std::unique_ptr<M>> = true;
template <>
inline constexpr bool kTakenForAModel<std::vector<nn::Parameter*>> = true;

// Something that an optimizer trains: a Model, a DDP, or a PipelineParallel.
// Copies are the same one.
class Optimizable {
 public:
  // A module, or a list of parameters, in place of a model is a compile error
  // that says what to write.
  template <typename M, std::enable_if_t<kTakenForAModel<M>, int> = 0>
  Optimizable(const M&) {  // NOLINT: for DDP, optimizers, AverageGradients()
    static_assert(std::is_base_of_v<Optimizable, M>,
                  "give the model of a rank, which has memory: auto model = "
                  "rank.Make<MyNet>(); DDP ddp(model); Sgd sgd(ddp, "
                  "{/*lr=*/0.1});");
  }

  Rank& rank() const;
  OptimizableCore& optimizable() const { return *optimizable_; }

 protected:
  explicit Optimizable(std::shared_ptr<OptimizableCore> core)
      : optimizable_(std::move(core)) {}

 private:
  std::shared_ptr<OptimizableCore> optimizable_;
};

// A model with its module on one rank, which Save() and Load() take, too
// (troupe/state.h): a Model, or a DDP.
class Trainable : public Optimizable, public SavedModel {
 public:
  // Refuses what Optimizable does.
  template <typename M, std::enable_if_t<kTakenForAModel<M>, int> = 0>
  Trainable(const M& module)  // NOLINT: for DDP and AverageGradients()
      : Optimizable(module) {}

  // The module's forward.
  Var operator()(const Var& x) const;

  operator nn::Module&() const { return module(); }

  // SavedModel:
  nn::Module& module() const override;
  std::function<void(ReadFn read)> WatchReads(
      const nn::Parameter& parameter) const override;
  std::vector<nn::Parameter*> Parameters() const {
    return module().Parameters();
  }
  ModelCore& core() const { return *core_; }

 protected:
  explicit Trainable(std::shared_ptr<ModelCore> core);

 private:
  std::shared_ptr<ModelCore> core_;
};

// Gives the module memory and initial values.
std::shared_ptr<ModelCore> PlaceModule(Rank& rank,
                                       std::unique_ptr<nn::Module> module);

template <typename M>
class Model : public Trainable {
 public:
  // The raw pointer is taken before the module is given away.
  Model(Rank& rank, std::unique_ptr<M> module)
      : Model(rank, module, module.get()) {}

  M* operator->() const { return module_; }
  M& operator*() const { return *module_; }

 private:
  Model(Rank& rank, std::unique_ptr<M>& module, M* raw)
      : Trainable(PlaceModule(rank, std::move(module))), module_(raw) {}

  M* module_;
};

template <typename M, typename... Args>
Model<M> Rank::Make(Args&&... args) {
  return Model<M>(*this, std::make_unique<M>(std::forward<Args>(args)...));
}

template <typename M>
Model<M> Rank::Place(std::unique_ptr<M> module) {
  return Model<M>(*this, std::move(module));
}

// Averages the gradients of the last Backward() over all ranks, for loops
// without DDP: one all-reduce a bucket, without overlap, and a small one, so
// that all ranks update what one of them has used.
void AverageGradients(const Trainable& model,
                      CallPlace place = CallPlace::Here());

}  // namespace troupe

#endif  // TROUPE_MODEL_H_
