#include "troupe/trainer/prediction_run.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/inference/inference_session.h"
#include "actors/inference/predict.h"
#include "actors/launchers/cluster_from_environment.h"
#include "base/check.h"
#include "nn/tensor/caching_allocator.h"
#include "troupe/trainer/evaluation_job.h"
#include "troupe/trainer/option_error.h"
#include "troupe/trainer/portion.h"
#include "troupe/trainer/predict_step.h"
#include "troupe/trainer/process_ranks.h"
#include "troupe/trainer/trainer_placement.h"

namespace troupe {
namespace {

using O = TrainerOptions;

// A replica in this process.
struct Replica {
  int number = 0;
  std::unique_ptr<actors::InferenceSession> session;
  std::int64_t samples = 0;
  std::int64_t batches = 0;
};

// A batch whose outputs are under way.
struct StartedBatch {
  PredictedBatch batch;
  std::shared_ptr<const actors::InferenceCall> call;
};

absl::StatusOr<actors::JobSpec> PredictionJob(const TrainerOptions& options,
                                              const Task& task,
                                              const FitData& data,
                                              const actors::Checkpoint& at) {
  TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
                          EvaluationJob(options, task, data, at));
  if (task.predict_step && spec.plan.mesh.pp() > 1) {
    return RefuseOption<&O::strategy>(
        options,
        " gives each rank a part of the model, and Task.predict_step needs "
        "all of it; use \"ddp\", or leave the step out");
  }
  return spec;
}

// Gives each replica of this node a GPU of its own. The stages of a pipeline
// have the first ones.
absl::Status SetGpu(const TrainerOptions& options, int index, int replicas,
                    actors::JobSpec& spec) {
  if (spec.device.type != nn::DeviceType::kCuda || spec.plan.mesh.pp() > 1 ||
      spec.device.index != nn::Device::kOneForEach) {
    return absl::OkStatus();
  }
  int before = 0;
  if (!options.cluster.has_value()) {
    TROUPE_ASSIGN_OR_RETURN(const actors::Placement placement,
                            actors::PlacementFromEnvironment());
    before = placement.local_process * replicas;
  }
  spec.device.index = before + index;
  return absl::OkStatus();
}

absl::StatusOr<std::int64_t> LimitedBatches(const TrainerOptions& options,
                                            std::int64_t all) {
  if (options.fast_dev_run > 0) {
    return std::min<std::int64_t>(options.fast_dev_run, all);
  }
  return BatchesOf<&O::limit_predict_batches>(options, all);
}

// Opens the replicas of this process.
absl::StatusOr<std::vector<Replica>> OpenReplicas(
    const TrainerOptions& options, const Task& task,
    const actors::JobSpec& spec, const FitData& data,
    const actors::Checkpoint& at) {
  nn::ModelFactory runs;
  if (task.predict_step) {
    runs = ModelOfPredictStep(spec.model, task.predict_step);
  }
  const int all = spec.plan.mesh.dp();
  TROUPE_ASSIGN_OR_RETURN(const auto cluster, TrainerCluster(options));
  const ProcessShare share =
      cluster.has_value() ? ShareOf(cluster->process, cluster->processes, all)
                          : ProcessShare{0, all};
  std::vector<Replica> replicas(share.count);
  for (int i = 0; i < share.count; ++i) {
    Replica& replica = replicas[i];
    replica.number = share.first + i;
    replica.samples = std::max<std::int64_t>(
        0, (data.dataset->size() - replica.number + all - 1) / all);
    TROUPE_ASSIGN_OR_RETURN(
        replica.batches,
        LimitedBatches(options, (replica.samples + data.batch_size - 1) /
                                    data.batch_size));
    actors::JobSpec own = spec;
    TROUPE_RETURN_IF_ERROR(SetGpu(options, i, share.count, own));
    TROUPE_ASSIGN_OR_RETURN(actors::Checkpoint opened,
                            CheckpointAt(options, at.path()));
    TROUPE_ASSIGN_OR_RETURN(replica.session, actors::InferenceSession::Open(
                                                 own, std::move(opened), runs));
  }
  return replicas;
}

// Returns the samples of a replica's batch. `replicas`: number of all.
PredictedBatch BatchAt(const Replica& replica, std::int64_t batch_idx,
                       const FitData& data, int replicas) {
  PredictedBatch batch;
  batch.replica = replica.number;
  batch.batch_idx = batch_idx;
  const std::int64_t begin = batch_idx * data.batch_size;
  const std::int64_t end = std::min(begin + data.batch_size, replica.samples);
  for (std::int64_t i = begin; i < end; ++i) {
    batch.samples.push_back(replica.number + i * replicas);
  }
  return batch;
}

}  // namespace

absl::Status RunPredictions(
    const TrainerOptions& options, const Task& task, const FitData& data,
    const actors::Checkpoint& at,
    const std::function<void(const PredictedBatch&)>& visit) {
  TROUPE_ASSIGN_OR_RETURN(const actors::JobSpec spec,
                          PredictionJob(options, task, data, at));
  nn::CachingAllocator memory;
  TROUPE_ASSIGN_OR_RETURN(std::vector<Replica> replicas,
                          OpenReplicas(options, task, spec, data, at));
  // One batch for each stage, and one that follows them.
  const std::size_t started_max = replicas.size() * (spec.plan.mesh.pp() + 1);
  std::deque<StartedBatch> started;
  const auto finish_oldest = [&]() -> absl::Status {
    StartedBatch oldest = std::move(started.front());
    started.pop_front();
    const absl::StatusOr<actors::InferenceAnswer>& answer = oldest.call->Wait();
    TROUPE_RETURN_IF_ERROR(answer.status());
    oldest.batch.output = answer->outputs[0];
    visit(oldest.batch);
    return absl::OkStatus();
  };
  bool more = true;
  for (std::int64_t batch_idx = 0; more; ++batch_idx) {
    more = false;
    for (const Replica& replica : replicas) {
      if (batch_idx >= replica.batches) continue;
      more = true;
      PredictedBatch batch =
          BatchAt(replica, batch_idx, data, spec.plan.mesh.dp());
      TROUPE_ASSIGN_OR_RETURN(
          nn::Tensor inputs,
          actors::InputsOf(*data.dataset, batch.samples, memory));
      started.push_back(
          {std::move(batch), replica.session->Start({std::move(inputs)})});
      if (started.size() <= started_max) continue;
      TROUPE_RETURN_IF_ERROR(finish_oldest());
    }
  }
  while (!started.empty()) TROUPE_RETURN_IF_ERROR(finish_oldest());
  return absl::OkStatus();
}

}  // namespace troupe
