#include "actors/engine/recording/step_recorder.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/engine/fiber/quiet_wait.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {
namespace {

StepGraphs::Options GraphOptions(const EngineSetup& setup) {
  const JobSpec& spec = *setup.spec;
  StepGraphs::Options options;
  options.measure = spec.cuda_graphs != "on";
  options.dtype = setup.plan->data_dtype;
  if (spec.note) {
    options.note = [note = spec.note,
                    rank = setup.rank](const std::string& line) {
      note(absl::StrCat("rank ", rank, ": ", line));
    };
  }
  return options;
}

}  // namespace

bool RecordsSteps(const EngineParts& parts, const Dispatcher& dispatcher) {
  const EngineSetup& setup = parts.setup;
  const std::string& wanted = setup.spec->cuda_graphs;
  if (wanted == "off" || !parts.device.has_queues()) return false;
  // A graph cannot hold waits of the host, and only NCCL waits for peers on the
  // device. With peers, all ranks must record the same step, so measuring,
  // where each rank decides for itself, is ruled out.
  const bool by_nccl = parts.device.reduces_on_device() &&
                       setup.plan->reduction_order == pipeline::kAnyReduction;
  const bool has_peers = setup.groups->Of(pipeline::GroupId::kDpPp).size() > 1;
  if (has_peers && !(by_nccl && wanted == "on")) return false;
  // Blocks of gradients change places from step to step.
  if (setup.plan->SlicesGradients()) return false;
  return dispatcher.recordable() && parts.device.axes().empty() &&
         !parts.overlaps_steps;
}

StepRecorder::StepRecorder(const EngineParts& parts, Dispatcher& dispatcher,
                           StepTrace& trace)
    : parts_(parts),
      dispatcher_(dispatcher),
      trace_(trace),
      graphs_(parts.kernels(), GraphOptions(parts.setup)) {}

absl::Status StepRecorder::RunStep(std::int64_t step, StepBatches batches) {
  StepGraphs::Way way = graphs_.Next(batches);
  graphs_.BeginStep(way);
  if (way == StepGraphs::Way::kCapture) {
    TROUPE_ASSIGN_OR_RETURN(const bool captured, Capture(step, batches));
    if (!captured) way = StepGraphs::Way::kEager;
  }
  if (way == StepGraphs::Way::kEager) {
    TROUPE_RETURN_IF_ERROR(
        dispatcher_.RunStep(StepKind::kTrain, step, std::move(batches)));
  } else {
    TROUPE_RETURN_IF_ERROR(
        Launch(step, batches, /*begun=*/way == StepGraphs::Way::kCapture));
  }
  graphs_.EndStep(way);
  return absl::OkStatus();
}

absl::StatusOr<bool> StepRecorder::Capture(std::int64_t step,
                                           const StepBatches& batches) {
  absl::StatusOr<StepBatches> placed = graphs_.Place(step, batches);
  if (!placed.ok()) {
    graphs_.Refuse(placed.status());
    return false;
  }
  TROUPE_RETURN_IF_ERROR(
      dispatcher_.Begin(StepKind::kTrain, step, *std::move(placed)));
  for (const auto& chunk : parts_.chunks) chunk->DrawAt(graphs_.draws());
  trace_.Mute();
  // Waits until all earlier work is done: a queue that waits for a library is
  // not recorded, and all ranks must record this step.
  parts_.events.AwaitAllUpdates();
  const base::Event before = nn::Record(parts_.kernels(), nn::Queue::kCompute);
  while (!before.ready()) parts_.wait.AwaitNews();
  const QuietWait::Scope quiet(parts_.wait);
  const bool captured = graphs_.Capture([this]() -> absl::Status {
    TROUPE_RETURN_IF_ERROR(dispatcher_.Walk());
    TROUPE_RETURN_IF_ERROR(loss().Settle());
    parts_.events.AwaitAllUpdates();
    return absl::OkStatus();
  });
  if (captured) graphs_.KeepLosses(loss().TakeChecked());
  return captured;
}

absl::Status StepRecorder::Launch(std::int64_t step, const StepBatches& batches,
                                  bool begun) {
  if (!begun) {
    TROUPE_ASSIGN_OR_RETURN(StepBatches placed, graphs_.Place(step, batches));
    TROUPE_RETURN_IF_ERROR(
        dispatcher_.Begin(StepKind::kTrain, step, std::move(placed)));
  }
  trace_.BeginGraph();
  // The last step's losses may still be on their way to the host.
  loss().AwaitCopied();
  TROUPE_RETURN_IF_ERROR(graphs_.Launch());
  loss().NoteLaunched();
  loss().Check(graphs_.losses());
  trace_.EndGraph();
  return dispatcher_.EndStep(dispatcher_.present());
}

}  // namespace troupe::actors
