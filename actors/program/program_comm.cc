#include "actors/program/program_comm.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "actors/protocol/strand_guard.h"

namespace troupe::actors {
namespace {

constexpr int kChunksPerDrive = 64;

bool Same(const std::weak_ptr<comm::Communicator>& a,
          const std::shared_ptr<comm::Communicator>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

}  // namespace

ProgramCommState::~ProgramCommState() {
  for (const auto& weak : groups) {
    if (const auto group = weak.lock()) group->SetWakeup(nullptr);
  }
}

void ProgramCommState::Add(const std::shared_ptr<comm::Communicator>& group) {
  const bool known =
      std::any_of(groups.begin(), groups.end(),
                  [&](const auto& weak) { return Same(weak, group); });
  if (known) return;
  groups.push_back(group);
  group->SetWakeup(calls.call());
}

void ProgramCommState::Start(const HandOver& handed) {
  Add(handed.group);
  const absl::StatusOr<comm::Event> started =
      handed.group->Start(handed.collective, handed.after);
  if (!started.ok()) return handed.done.Complete(started.status());
  handed.done.Follow(*started);
}

bool ProgramCommState::Drive() {
  bool progress = false;
  groups.erase(
      std::remove_if(groups.begin(), groups.end(),
                     [&](const std::weak_ptr<comm::Communicator>& weak) {
                       const auto group = weak.lock();
                       if (group == nullptr) return true;
                       progress = progress || group->Progress();
                       return false;
                     }),
      groups.end());
  return progress;
}

ProgramCommActor::behavior_type ProgramCommBehavior(
    ProgramCommActor::stateful_pointer<ProgramCommState> self) {
  self->state.calls = DriveCalls(ProgramCommActor(self));
  TellExceptions(self, [self](const absl::Status& status) {
    for (const auto& weak : self->state.groups) {
      if (const auto group = weak.lock()) group->Abort(status);
    }
  });
  const int chunks_max = IsSimulated(self->system()) ? 1 : kChunksPerDrive;
  return {[=](const HandOver& handed) { self->state.Start(handed); },
          [=](const DriveGroup& driven) {
            self->state.Add(driven.group);
            self->state.calls.call()();  // work from before
          },
          [=](drive_atom) {
            ProgramCommState& state = self->state;
            state.calls.Taken();
            int chunks = 0;
            while (chunks < chunks_max && state.Drive()) ++chunks;
            if (chunks == chunks_max) state.calls.call()();
          }};
}

}  // namespace troupe::actors
