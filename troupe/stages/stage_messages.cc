#include "troupe/stages/stage_messages.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/program/program_messages.h"
#include "base/check.h"
#include "base/status_error.h"
#include "nn/kernels/device_queues.h"
#include "pipeline/group_id.h"

namespace troupe {
namespace {

// Number of chunks that the rank moves between two pieces of a backward.
constexpr int kChunksPerDrive = 8;

// Messages of one stage and direction have a tag of their own.
std::uint32_t TagOf(int stage, bool forward) {
  return 2 * static_cast<std::uint32_t>(stage) + (forward ? 0 : 1);
}

}  // namespace

StageMessages::StageMessages(Rank& rank, const pipeline::Plan& plan)
    : rank_(rank),
      plan_(plan),
      number_(plan.mesh.CoordOf(rank.number(), pipeline::kPpAxis)) {
  if (plan.mesh.pp() == 1) return;
  group_ = base::OrThrow(rank.strand().MakeGroup(
      plan.mesh.Group(rank.number(), pipeline::kPpAxis)));
  const absl::Status messages = group_->CheckMessages();
  if (messages.ok()) return;
  throw base::StatusError(absl::Status(
      messages.code(),
      absl::StrCat(
          "PipelineParallel: stages exchange tensors by messages, and ",
          messages.message(),
          ": SpawnOptions::reduction_order = \"tree\" makes such "
          "groups")));
}

StageMessages::~StageMessages() {
  Abort(absl::CancelledError(
      absl::StrCat("rank ", rank_.number(),
                   " ended while it exchanged tensors with other stages")));
}

void StageMessages::Abort(const absl::Status& why) {
  DropSent();
  const bool receiving = std::any_of(
      channels_.begin(), channels_.end(),
      [](const Channel& channel) { return !channel.tensors.empty(); });
  if (receiving || !sent_.empty()) group_->Abort(why);
}

std::vector<nn::TensorSpec> StageMessages::TensorsInto(int stage) const {
  const pipeline::StagePlan& plan = plan_.stages[stage];
  std::vector<nn::TensorSpec> tensors = plan.inputs();
  for (const pipeline::SkipPlan& skip : plan.skips) {
    tensors.push_back(skip.spec);
  }
  return tensors;
}

void StageMessages::Begin(actors::StepKind kind, std::int64_t step) {
  kind_ = kind;
  step_ = step;
  const bool trains = kind == actors::StepKind::kTrain;
  micro_batches_ = trains ? plan_.micro_batches : 1;
  channels_.clear();
  const int stages = static_cast<int>(plan_.stages.size());
  for (int stage : plan_.StagesOf(rank_.number())) {
    if (stage > 0) AddChannel(stage, /*forward=*/true, RankOf(stage - 1));
    if (trains && stage + 1 < stages) {
      AddChannel(stage, /*forward=*/false, RankOf(stage + 1));
    }
  }
  for (Channel& channel : channels_) StartReceives(channel);
}

void StageMessages::AddChannel(int stage, bool forward, int from) {
  if (from == number_) return;
  Channel channel;
  channel.stage = stage;
  channel.forward = forward;
  channel.from = from;
  channels_.push_back(std::move(channel));
}

void StageMessages::StartReceives(Channel& channel) {
  nn::Kernels& kernels = rank_.kernels();
  nn::Allocator& memory =
      group_->HandsOver() ? kernels.allocator() : nn::HostAllocator(kernels);
  for (const nn::TensorSpec& spec :
       TensorsInto(channel.forward ? channel.stage : channel.stage + 1)) {
    Receive& receive = channel.tensors.emplace_back();
    receive.into =
        base::OrThrow(nn::Tensor::Create(spec.shape, spec.dtype, memory));
    receive.done = base::OrThrow(
        group_->StartRecv(channel.from, TagOf(channel.stage, channel.forward),
                          receive.into, &receive.arrival));
  }
}

void StageMessages::Send(int stage, bool forward, int micro_batch,
                         const nn::TensorList& tensors) {
  if (RankOf(stage) == number_) {
    actors::Transfer transfer;
    transfer.stage = stage;
    transfer.step = step_;
    transfer.kind = kind_;
    transfer.forward = forward;
    transfer.micro_batch = micro_batch;
    transfer.tensors = tensors;
    local_.push_back(std::move(transfer));
    return;
  }
  nn::Kernels& kernels = rank_.kernels();
  const std::vector<nn::TensorSpec> specs =
      TensorsInto(forward ? stage : stage + 1);
  TROUPE_CHECK(specs.size() == tensors.size(), "a chunk sends what is planned");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    nn::Tensor tensor = tensors[i];
    if (!tensor.defined()) {
      tensor = base::OrThrow(
          nn::Tensor::Create({0}, specs[i].dtype, kernels.allocator()));
    }
    const actors::Outgoing out =
        base::OrThrow(actors::PrepareSend(kernels, *group_, tensor));
    sent_.push_back(
        {tensor, out.data,
         base::OrThrow(group_->StartSend(RankOf(stage), TagOf(stage, forward),
                                         out.data, out.ready))});
  }
}

std::optional<actors::Transfer> StageMessages::Take() {
  if (!local_.empty()) {
    actors::Transfer transfer = std::move(local_.front());
    local_.pop_front();
    return transfer;
  }
  for (Channel& channel : channels_) {
    const bool whole =
        !channel.tensors.empty() &&
        std::all_of(channel.tensors.begin(), channel.tensors.end(),
                    [](const Receive& tensor) { return tensor.done.ready(); });
    if (!whole) continue;
    actors::Transfer transfer;
    transfer.stage = channel.stage;
    transfer.step = step_;
    transfer.kind = kind_;
    transfer.forward = channel.forward;
    transfer.micro_batch = channel.micro_batch;
    for (const Receive& tensor : channel.tensors) {
      base::OrThrow(tensor.done.status());
      const comm::Arrival& arrival = tensor.arrival;
      transfer.tensors.push_back(arrival.count == 0       ? nn::Tensor()
                                 : arrival.data.defined() ? arrival.data
                                                          : tensor.into);
    }
    channel.tensors.clear();
    if (++channel.micro_batch < micro_batches_) StartReceives(channel);
    return transfer;
  }
  return std::nullopt;
}

bool StageMessages::DropSent() {
  const auto used =
      std::remove_if(sent_.begin(), sent_.end(), [](const Sent& sent) {
        return sent.done.ready() && sent.done.status().ok();
      });
  const bool any = used != sent_.end();
  sent_.erase(used, sent_.end());
  return any;
}

bool StageMessages::sending() {
  DropSent();
  for (const Sent& sent : sent_) {
    if (sent.done.ready()) base::OrThrow(sent.done.status());
  }
  return !sent_.empty();
}

void StageMessages::AddTo(std::vector<actors::StartedIn>& started) const {
  for (const Channel& channel : channels_) {
    if (channel.tensors.empty()) continue;
    // All may have come since Take(): then the wait ends at once.
    const auto next = std::find_if(
        channel.tensors.begin(), channel.tensors.end(),
        [](const Receive& tensor) { return !tensor.done.ready(); });
    const Receive& awaited =
        next == channel.tensors.end() ? channel.tensors.front() : *next;
    started.push_back({group_.get(), awaited.done, /*drives=*/true});
  }
  for (const Sent& sent : sent_) {
    started.push_back({group_.get(), sent.done, /*drives=*/true});
  }
}

void StageMessages::Drive() {
  if (group_ == nullptr || rank_.kernels().queues() != nullptr) return;
  for (int i = 0; i < kChunksPerDrive && group_->Progress(); ++i) {
  }
}

}  // namespace troupe
