// A model with its DDP, optimizer and accumulation of gradients in one object,
// as DeepSpeed's initialize() returns it.
//
//   EngineOptions options;
//   options.gradient_accumulation_steps = 4;
//   options.gradient_clipping = 1;
//   Engine engine(rank.Make<Net>(), AdamOptions{/*lr=*/1e-3}, options);
//   for (auto [x, y] : loader) {
//     engine.Backward(nn::CrossEntropy(engine(x), y));
//     engine.Step();                            // updates at every fourth call
//   }
//   engine.SaveCheckpoint("checkpoints");
//
// Each Backward() adds the gradients of its loss's mean, divided by
// gradient_accumulation_steps, so that an update has those of the mean over all
// of its micro-batches. The ranks along dp reduce gradients in the last of
// them; Step() then updates, and discards the gradients. There is no
// ZeroGrad().
//
// A checkpoint is one file for each tag, written by the first rank along dp,
// and a file "latest" with the tag of the last one. A run that is loaded goes
// on with the same bits.
//
// Errors: base::StatusError. kInvalidArgument names the option.
// kFailedPrecondition: Step() without a Backward(). kNotFound: a folder without
// the checkpoint. Those of the DDP, the optimizer and files are theirs.
// Threads: the rank's own, which outlives it.
// Source of names: DeepSpeed 0.15, runtime/engine.py.

#ifndef TROUPE_ENGINE_H_
#define TROUPE_ENGINE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>

#include "nn/optim/adam.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/sgd.h"
#include "troupe/ddp.h"
#include "troupe/model.h"
#include "troupe/optimizer.h"

namespace troupe {

struct EngineOptions {
  int gradient_accumulation_steps = 1;  // micro-batches of an update
  // Limit on the norm of an update's gradients; 0: that of the optimizer's
  // options.
  double gradient_clipping = 0;
  DDPOptions ddp = {};
};

class Engine {
 public:
  // Options of the optimizer, which say what it is.
  using Rule = std::variant<nn::SgdOptions, nn::AdamOptions, nn::LambOptions,
                            nn::LarsOptions>;

  Engine(const Trainable& model, const Rule& rule,
         const EngineOptions& options = {});
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // The model's forward.
  Var operator()(const Var& x) const { return ddp_(x); }
  void Backward(const Var& loss);
  void Step(CallPlace place = CallPlace::Here());

  // Whether the next Step() updates.
  bool IsGradientAccumulationBoundary() const {
    return (micro_steps_ + 1) % options_.gradient_accumulation_steps == 0;
  }
  std::int64_t micro_steps() const { return micro_steps_; }  // calls of Step()
  std::int64_t global_steps() const { return optimizer_->steps(); }  // updates
  const DDP& ddp() const { return ddp_; }
  nn::Module& module() const { return ddp_.module(); }
  // For schedules and rates (troupe/optimizer.h), in updates.
  Optimizer& optimizer() { return *optimizer_; }

  // Numbers of the program's that are saved with a checkpoint.
  using ClientState = std::map<std::string, std::int64_t>;

  // Writes "FOLDER/TAG.safetensors"; an empty tag is "global_step" and the
  // number of updates. All ranks along dp call it.
  void SaveCheckpoint(const std::string& folder, std::string tag = "",
                      const ClientState& client_state = {});
  // Reads the checkpoint of a tag, or the latest one, on all ranks, and sets
  // the numbers in `client_state`, which were all saved; null: there are none.
  // Returns the tag.
  std::string LoadCheckpoint(const std::string& folder, std::string tag = "",
                             ClientState* client_state = nullptr);

 private:
  State StateOf(ClientState& client_state);

  const EngineOptions options_;
  const DDP ddp_;
  const std::unique_ptr<Optimizer> optimizer_;
  std::int64_t micro_steps_ = 0;
  bool has_gradients_ = false;  // whether Backward() was called for this step
};

}  // namespace troupe

#endif  // TROUPE_ENGINE_H_
