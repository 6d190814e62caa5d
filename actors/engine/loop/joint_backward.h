// The backward of a loss that depends on the parameters of one or more models
// of a hand-written loop, as a GAN's generator loss depends on those of the
// discriminator: one pass, in which each model's gradients go to its own engine
// (loop_engine.h) and are reduced as its own backward would reduce them.
//
//   const BackwardModel models[] = {{&generator, /*synced=*/true},
//                                   {&discriminator, /*synced=*/true}};
//   TROUPE_RETURN_IF_ERROR(
//       JointBackward(models).Run({&tape, loss, 1 / count}));
//
// All ranks name the models in the same order. The engines' rules hold for each
// of them, and all are asked before the first one begins.
//
// Errors: those of LoopEngine::Backward(); kInvalidArgument: several models of
// which one has exact_mean.
// Threads: those of the engines, one at a time.

#ifndef ACTORS_ENGINE_LOOP_JOINT_BACKWARD_H_
#define ACTORS_ENGINE_LOOP_JOINT_BACKWARD_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "actors/chunks/gradient_ledger.h"
#include "actors/engine/loop/loop_engine.h"
#include "nn/autograd/parameter.h"
#include "nn/autograd/tape.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

// A model of a backward, and whether its gradients are reduced.
struct BackwardModel {
  LoopEngine* engine;
  bool synced;
};

class JointBackward final : private nn::GradientSink {
 public:
  // `models`, of which there is one at least, outlive it.
  explicit JointBackward(absl::Span<const BackwardModel> models)
      : models_(models) {}

  // Runs the backward to its end; LoopBackward::synced is that of the models.
  absl::Status Run(const LoopBackward& backward);

 private:
  absl::Status Check(const LoopBackward& backward) const;
  absl::Status RunPieces(nn::BackwardPass& pass);
  absl::Status StartReductions();
  // Returns the ledger of a parameter that Check() has found.
  GradientLedger& LedgerOf(const nn::Parameter& parameter) const;

  // nn::GradientSink:
  absl::Status GradientNeeded(nn::Parameter& parameter) override {
    return LedgerOf(parameter).GradientNeeded(parameter);
  }
  bool TakesRows(const nn::Parameter& parameter) override {
    return LedgerOf(parameter).TakesRows(parameter);
  }
  absl::Status TakeRows(nn::Parameter& parameter, std::int64_t begin,
                        const nn::Tensor& rows) override {
    return LedgerOf(parameter).TakeRows(parameter, begin, rows);
  }
  void GradientComplete(nn::Parameter& parameter) override {
    LedgerOf(parameter).GradientComplete(parameter);
  }
  void LastReaderDone(nn::Parameter& parameter) override {
    LedgerOf(parameter).LastReaderDone(parameter);
  }

  const absl::Span<const BackwardModel> models_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_LOOP_JOINT_BACKWARD_H_
