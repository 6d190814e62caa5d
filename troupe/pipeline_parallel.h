// Pipeline parallelism in a loop of one's own: a model cut into stages over the
// ranks along the mesh's axis pp, and a schedule that keeps them all at work on
// micro-batches of a batch (torch.distributed.pipelining).
//
//   void Run(Rank& rank) {
//     PipelineOptions options = {/*cuts=*/{"2"}, /*micro_batches=*/4,
//                                /*batch=*/{32, 28, 28, 1}, "1f1b"};
//     PipelineParallel model(
//         rank, [] { return nn::MakeMlp({784, 64, 10}, {}); }, options);
//     Sgd sgd(model, {/*lr=*/0.1});
//     DataLoader loader(rank, digits, {/*batch_size=*/32});
//     for (auto [x, y] : loader) {
//       sgd.ZeroGrad();
//       double loss = model.Run(x, y, nn::ops::CrossEntropyLoss());
//       sgd.Step();
//     }
//   }
//   SpawnOptions spawn;
//   spawn.ranks = 2, spawn.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
//   return ExitCode(Spawn(Run, spawn));
//
// All ranks make the model and call the same. A rank keeps the parameters of
// its stages alone. With Mesh(/*dp=*/2, /*pp=*/2) there are two replicas of the
// pipeline, each with a batch of its own, and gradients are averaged over them
// while backwards run: it is its own DDP. A DataLoader gives all stages of a
// replica the same batches.
//
// Run() runs forward and backward of all micro-batches, and Step() updates.
// Losses and parameters have the bits of a job with the same plan
// (actors/job.h), whatever the schedule. Gradients, if a program reads them
// between the two, are those of the *sum* over all targets of all replicas:
// Step() divides by their number, as DDPOptions::exact_mean does. Gradients of
// several Run() do not add up; take more micro-batches. Run() without an
// optimizer is fine. Every parameter is updated, also those that the loss does
// not depend on.
//
// The loss is a loss function of a job (nn/ops/loss.h), and must be the same on
// all ranks; only that of the last stage is called. Layers draw random numbers,
// and batch norms take statistics, for each micro-batch apart.
//
// Save() and Load() work on the stages of a rank, each rank with a file of its
// own, since no rank has all of them:
//
//   State state;
//   model.AddTo(state);
//   state.Add(sgd);
//   Save(state, absl::StrCat("stage", rank.number(), ".safetensors"));
//
// Errors: base::StatusError. kInvalidArgument: the options, the mesh, the model
// and a batch do not fit together, or ranks differ in them; names what to
// change. kFailedPrecondition: a call in the wrong order. kUnimplemented, from
// the constructor: the groups are NCCL's, which have no messages
// (SpawnOptions::reduction_order). Errors of a forward name step, micro-batch
// and module.
// Threads: the rank's own. A model ends before its Rank.
// Schedules and their sources: pipeline/schedules/schedules.h.

#ifndef TROUPE_PIPELINE_PARALLEL_H_
#define TROUPE_PIPELINE_PARALLEL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/spec/job_fields.h"
#include "nn/autograd/parameter.h"
#include "nn/modules/module.h"
#include "nn/tensor/dtype.h"
#include "nn/tensor/tensor.h"
#include "pipeline/partition.h"
#include "troupe/group.h"
#include "troupe/model.h"
#include "troupe/rank.h"
#include "troupe/state.h"

namespace troupe {

class PipelineCore;  // troupe/stages/pipeline_core.h

struct PipelineOptions {
  // Where stages begin, except the first one: paths or numbers of modules
  // (split_spec; pipeline/partition.h). The model is a Sequential, and there
  // are pp stages, or a multiple of pp for schedules with several on a rank.
  std::vector<pipeline::Cut> cuts;
  int micro_batches = 1;
  // Shape of the inputs of one Run() on each replica (mb_args times
  // micro_batches): its first axis are samples, which micro_batches divides.
  Shape batch;
  // Name of the schedule: "gpipe", "1f1b", "interleaved_1f1b", "zb_h1", ...
  std::string schedule = "1f1b";
  DType dtype = DType::kF32;  // dtype of the inputs
};

class PipelineParallel : public Optimizable {
 public:
  // `make` makes the whole model; each rank calls it and keeps its stages.
  PipelineParallel(Rank& rank, const actors::JobModel& make,
                   const PipelineOptions& options);

  // Computes the gradients of a batch, and returns its mean loss over all
  // replicas, on every rank. `inputs` are read by the rank of the first stage
  // and `targets` by that of the last one: on other ranks they may be
  // undefined.
  double Run(const Tensor& inputs, const Tensor& targets,
             const actors::JobLoss& loss, CallPlace place = CallPlace::Here());
  // Returns the mean loss of a batch without gradients, as Run(): modules are
  // in evaluation, with the buffers of the first replica.
  double Evaluate(const Tensor& inputs, const Tensor& targets,
                  const actors::JobLoss& loss,
                  CallPlace place = CallPlace::Here());
  // Returns the model's output [batch, ...] in evaluation on the rank of the
  // last stage; undefined elsewhere.
  Tensor Predict(const Tensor& inputs, CallPlace place = CallPlace::Here());

  // The modules of this rank's stages, in the order of the model.
  std::vector<nn::Module*> stages() const;
  // Their parameters, with their names in the whole model.
  std::vector<nn::Parameter*> Parameters() const;
  // Adds their parameters and buffers.
  void AddTo(State& state) const;
  // Whether this rank has the model's last stage.
  bool is_last() const;
  // Lines about the stages, their buckets and tables, for people.
  std::string ToString() const;

 private:
  explicit PipelineParallel(std::shared_ptr<PipelineCore> core);

  std::shared_ptr<PipelineCore> core_;
};

}  // namespace troupe

#endif  // TROUPE_PIPELINE_PARALLEL_H_
