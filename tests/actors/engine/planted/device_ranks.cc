#include "tests/actors/engine/planted/device_ranks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/fnv_hash.h"
#include "comm/device/device_group.h"
#include "nn/kernels/device_queues.h"
#include "tests/actors/engine/host_fixture.h"
#include "tests/actors/engine/test_groups.h"

namespace troupe::actors {
namespace {

// Step after which a snapshot is taken; another is taken after the last step.
constexpr std::int64_t kSnapshotStep = 1;
// Limit on the turns of a job; a correct one takes some thousand.
constexpr int kTurnsMax = 200'000;

StrandFiber::Options FiberOptions() {
  StrandFiber::Options options;
  options.shared_thread = true;
  options.notify = [] {};
  return options;
}

std::uint64_t HashOf(const Snapshot& snapshot) {
  base::FnvHash hash;
  for (const auto* tensors :
       {&snapshot.tensors.model, &snapshot.tensors.optimizer}) {
    for (const nn::TensorPart& part : *tensors) {
      hash.AddBytes(part.elements.raw(), part.elements.bytes());
    }
  }
  return hash.value();
}

}  // namespace

DeviceRank::DeviceRank(const EngineFixture& fixture, int rank,
                       const RankGroups* groups, std::int64_t steps)
    : fixture_(fixture), rank_(rank), groups_(groups), steps_(steps) {
  fiber_.emplace(FiberOptions(), [this] { failure_ = Train(); });
}

// The fiber is destroyed before the objects that its frames refer to.
DeviceRank::~DeviceRank() { fiber_.reset(); }

absl::Status DeviceRank::Open() {
  StepRunner::Setup setup;
  setup.rank = rank_;
  setup.local_rank = rank_;
  setup.spec = &fixture_.spec();
  setup.plan = &fixture_.plan();
  setup.train_table = fixture_.plan().RankPlanOf(rank_).train;
  setup.groups = groups_;
  TROUPE_ASSIGN_OR_RETURN(runner_, StepRunner::Create(setup, this, &*fiber_));
  return absl::OkStatus();
}

absl::Status DeviceRank::Train() {
  for (std::int64_t step = 0; step < steps_; ++step) {
    TROUPE_RETURN_IF_ERROR(runner_->RunStep(StepKind::kTrain, step,
                                            fixture_.Batches(rank_, step)));
    if (step != kSnapshotStep && step + 1 != steps_) continue;
    TROUPE_RETURN_IF_ERROR(runner_->FinishTail());
    TROUPE_ASSIGN_OR_RETURN(PendingSnapshot snapshot,
                            runner_->MakeSnapshot(step));
    snapshots_.push_back(std::move(snapshot));
  }
  return absl::OkStatus();
}

absl::Status DeviceRank::TakeIn() {
  while (!launched_.empty()) {
    const Launched launched = std::move(launched_.front());
    launched_.pop_front();
    TROUPE_RETURN_IF_ERROR(launched.done.status());
    TROUPE_RETURN_IF_ERROR(runner_->CollectiveDone(
        launched.step, launched.action, *launched.done));
  }
  while (!mail_.empty()) {
    const Transfer transfer = std::move(mail_.front());
    mail_.pop_front();
    TROUPE_RETURN_IF_ERROR(runner_->Deliver(transfer));
  }
  return absl::OkStatus();
}

absl::Status DeviceRank::TakeLosses() {
  while (true) {
    TROUPE_ASSIGN_OR_RETURN(const std::optional<LossBits> loss,
                            runner_->TakeLoss());
    if (!loss.has_value()) return absl::OkStatus();
    losses_.push_back(*loss);
  }
}

absl::Status DeviceRank::Turn() {
  TROUPE_RETURN_IF_ERROR(TakeIn());
  runner_->kernels().queues()->Progress();
  if (!ended_ && fiber_->Resume() == StrandFiber::State::kDone) ended_ = true;
  TROUPE_RETURN_IF_ERROR(failure_);
  return TakeLosses();
}

bool DeviceRank::done() const {
  return ended_ && static_cast<std::int64_t>(losses_.size()) == steps_ &&
         std::all_of(
             snapshots_.begin(), snapshots_.end(),
             [](const auto& snapshot) { return snapshot.ready.ready(); });
}

std::string DeviceRank::Results() const {
  std::string text;
  for (const LossBits& loss : losses_) {
    absl::StrAppend(&text, " ", absl::Hex(loss.sum));
  }
  for (const PendingSnapshot& pending : snapshots_) {
    absl::StrAppend(&text, " ", absl::Hex(HashOf(*pending.snapshot)));
  }
  return text;
}

void DeviceRank::Launch(int action, pipeline::GroupId group,
                        const comm::Collective& collective,
                        const comm::Event& after) {
  launched_.push_back({runner_->launched_step(), action,
                       groups_->Of(group).Start(collective, after)});
}

void DeviceRank::Send(int stage, bool forward, int micro_batch,
                      const nn::TensorList& tensors, const base::Event& ready) {
  stages_[stage]->mail_.push_back(
      TransferOf(*runner_, stage, forward, micro_batch, tensors, ready));
}

absl::Status DeviceRanks::Open(std::int64_t steps) {
  const pipeline::Plan& plan = fixture_.plan();
  groups_ = MakeTestGroups(plan.mesh, comm::MakeDeviceGroup);
  for (int rank = 0; rank < plan.mesh.size(); ++rank) {
    ranks_.push_back(
        std::make_unique<DeviceRank>(fixture_, rank, &groups_[rank], steps));
    TROUPE_RETURN_IF_ERROR(ranks_.back()->Open());
  }
  for (int rank = 0; rank < plan.mesh.size(); ++rank) {
    ranks_[rank]->Wire(StagesOf(plan, rank, ranks_));
  }
  return absl::OkStatus();
}

absl::Status DeviceRanks::Run() {
  nn::RandomStream draws(nn::RandomKey(seed_, nn::Purpose::kTest), {});
  for (int turns = 0; turns < kTurnsMax; ++turns) {
    TROUPE_RETURN_IF_ERROR(ranks_[draws.Below(ranks_.size())]->Turn());
    if (std::all_of(ranks_.begin(), ranks_.end(),
                    [](const auto& rank) { return rank->done(); })) {
      return absl::OkStatus();
    }
  }
  return absl::DeadlineExceededError("the ranks stand still");
}

std::string DeviceRanks::Train(std::int64_t steps) {
  absl::Status status = Open(steps);
  if (status.ok()) status = Run();
  std::string text;
  if (status.ok()) {
    for (const auto& rank : ranks_) absl::StrAppend(&text, rank->Results());
  } else {
    text = absl::StrCat("error: ", status.ToString());
  }
  ranks_.clear();
  return text;
}

}  // namespace troupe::actors
