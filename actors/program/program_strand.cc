#include "actors/program/program_strand.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "actors/caf/actor_timeout.h"
#include "actors/protocol/strand_guard.h"
#include "base/check.h"
#include "base/exception_text.h"
#include "base/status_error.h"

namespace troupe::actors {
namespace {

// Time for which a strand with a thread of its own yields to others before it
// sleeps: to be woken takes some 50 us, and more on a busy machine. A core is
// not idle meanwhile, so that the system leaves it without the strands that
// wait for another core.
constexpr std::chrono::microseconds kYieldsFor(100);

// Wakes the strand while it waits for `group`, which it drives itself or not.
// If the fiber is unwound before what it started has ended, its memory must not
// be used by peers any more.
class GroupWait {
 public:
  GroupWait(comm::Communicator& group, const base::Event& done,
            const std::function<void()>& notify, bool drives)
      : group_(group), done_(done), drives_(drives) {
    if (drives_) group_.SetWakeup(notify);
    done_.OnReady([notify](const absl::Status&) { notify(); });
  }
  ~GroupWait() {
    if (drives_) group_.SetWakeup(nullptr);
    if (ended_ || done_.ready()) return;
    group_.Abort(absl::CancelledError(absl::StrCat(
        "rank ", group_.rank(), " of the group ended while it waited")));
  }
  GroupWait(const GroupWait&) = delete;
  GroupWait& operator=(const GroupWait&) = delete;
  // Says that the wait is over, and the fiber goes on.
  void End() { ended_ = true; }

 private:
  comm::Communicator& group_;
  const base::Event done_;
  const bool drives_;
  bool ended_ = false;
};

std::string WhatItWaitsFor(const comm::Communicator& group) {
  std::vector<std::string> waits;
  for (const comm::Waiting& waiting : group.Waits()) {
    waits.push_back(waiting.ranks.empty()
                        ? waiting.what
                        : absl::StrCat(waiting.what, ", for rank ",
                                       absl::StrJoin(waiting.ranks, ", "),
                                       " of the group"));
  }
  return absl::StrJoin(waits, "; ");
}

}  // namespace

ProgramState::~ProgramState() {
  // A strand that is killed has not ended its program.
  End(absl::CancelledError("the program was ended"));
  fiber_.reset();
  device_.Close();
}

void ProgramState::Init(Self self, ProgramContextPtr context, int rank) {
  self_ = self;
  context_ = std::move(context);
  rank_ = rank;
  calls_ = DriveCalls(ProgramActor(self));
  StrandFiber::Options options;
  options.shared_thread = IsSimulated(self->system());
  options.timeout = context_->spec.timeout;
  options.notify = calls_.call();
  fiber_.emplace(std::move(options), [this] { ended_with_ = RunBody(); });
}

bool ProgramState::shares_thread() const {
  return IsSimulated(self_->system());
}

absl::Status ProgramState::RunBody() {
  try {
    absl::Status status = OpenDevice();
    if (status.ok()) status = context_->spec.body(*this);
    if (status.ok() && context_->by_nccl && device_.has_queues()) {
      status = AwaitGroups();
    }
    return WithCalls(status);
  } catch (const base::StatusError& error) {
    return WithCalls(error.status());
  } catch (const std::exception&) {
    return WithCalls(
        absl::InternalError(base::ExceptionText(std::current_exception())));
  }
}

absl::Status ProgramState::AwaitGroups() {
  const base::Event made = device_.RecordGroups();
  AwaitDevice(made);
  return made.status();
}

absl::Status ProgramState::OpenDevice() {
  TROUPE_RETURN_IF_ERROR(context_->refused);
  TROUPE_RETURN_IF_ERROR(device_.Open(
      context_->spec, context_->ranks_before + rank_ - context_->first,
      context_->choices));
  return device_.SetCalls(
      [this](const base::Event& event) { AwaitDevice(event); }, calls_.call(),
      /*watch=*/!shares_thread());
}

absl::StatusOr<std::shared_ptr<comm::Communicator>> ProgramState::MakeGroup(
    const std::vector<int>& ranks) {
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<comm::Communicator> group,
                          context_->groups.Join(rank_, ranks));
  if (!device_.has_queues()) return group;
  TROUPE_RETURN_IF_ERROR(device_.Use(group));
  self_->send(comm(), DriveGroup{group});
  return group;
}

ProgramCommActor& ProgramState::comm() {
  if (comm_ == nullptr) {
    comm_ = SpawnStrand(self_->system(), ProgramCommBehavior);
  }
  return comm_;
}

absl::Status ProgramState::WithCalls(const absl::Status& status) const {
  if (status.ok()) return status;
  std::string text = absl::StrCat("rank ", rank_, ": ", status.message());
  for (int peer = 0; peer < context_->spec.ranks; ++peer) {
    if (peer == rank_) continue;
    const std::string call = context_->calls[peer].ToString();
    if (context_->returned[peer]) {
      absl::StrAppend(&text, "; rank ", peer, " has returned");
    } else if (!call.empty()) {
      absl::StrAppend(&text, "; rank ", peer, " ", call);
    }
  }
  return absl::Status(status.code(), text);
}

void ProgramState::Resume() {
  if (looking_ || ended_) return;
  switch (fiber_->Resume()) {
    case StrandFiber::State::kWaiting:
      break;
    case StrandFiber::State::kLooking:
      looking_ = true;
      self_->send(self_, resume_atom::value);
      break;
    case StrandFiber::State::kDone:
      End(ended_with_);
      device_.Close();
      self_->quit();
      break;
  }
}

void ProgramState::OnDrive() {
  calls_.Taken();
  const bool worked = device_.Progress();
  Resume();
  // The fiber may have enqueued more work.
  if (device_.has_queues() && (device_.Progress() || worked)) calls_.call()();
}

void ProgramState::OnResume() {
  looking_ = false;
  Resume();
}

absl::Status ProgramState::Run(comm::Communicator& group,
                               const comm::Collective& collective) {
  if (!shares_thread() && !device_.has_queues()) {
    return group.RunInline(collective, context_->spec.timeout);
  }
  TROUPE_ASSIGN_OR_RETURN(
      const base::Event done,
      group.Start(collective, nn::Record(*kernels(), nn::Queue::kCompute)));
  return Await(group, done);
}

base::Event ProgramState::HandOver(
    const std::shared_ptr<comm::Communicator>& group,
    const comm::Collective& collective, const base::Event& after) {
  const base::Event done = base::Event::Make();
  self_->send(comm(), actors::HandOver{group, collective, after, done});
  return done;
}

absl::Status ProgramState::Await(comm::Communicator& group,
                                 const base::Event& done) {
  const StartedIn started{&group, done, /*drives=*/true};
  AwaitAny(absl::MakeConstSpan(&started, 1));
  return done.status();
}

absl::Status ProgramState::AwaitHandedOver(comm::Communicator& group,
                                           const base::Event& done) {
  const StartedIn started{&group, done, /*drives=*/false};
  AwaitAny(absl::MakeConstSpan(&started, 1));
  return done.status();
}

void ProgramState::AwaitAny(absl::Span<const StartedIn> started) {
  // The communication strand drives groups of devices.
  const auto drives = [this](const StartedIn& one) {
    return one.drives && !device_.has_queues();
  };
  const auto ended = [started] {
    return std::any_of(started.begin(), started.end(),
                       [](const StartedIn& one) { return one.done.ready(); });
  };
  if (ended()) return;
  std::deque<GroupWait> wakers;
  for (const StartedIn& one : started) {
    wakers.emplace_back(*one.group, one.done, calls_.call(), drives(one));
  }
  // A stalled rank is told about the first one.
  wait_.BeginFor(*started[0].group, self_->clock().now());
  while (!ended()) {
    bool progress = device_.Progress();
    for (const StartedIn& one : started) {
      if (drives(one) && one.group->Progress()) progress = true;
    }
    if (progress) {
      fiber_->TakeNews(/*expected=*/false);
    } else {
      WatchAfter(context_->spec.timeout);
      fiber_->AwaitNews();
    }
  }
  wait_.EndForGroup();
  for (GroupWait& waker : wakers) waker.End();
}

void ProgramState::AwaitEvent(const base::Event& event) {
  if (!shares_thread() && !device_.has_queues()) {
    const auto until = self_->clock().now() + kYieldsFor;
    while (!event.ready() && self_->clock().now() < until) sched_yield();
    if (event.ready()) return;
  }
  event.OnReady([notify = calls_.call()](const absl::Status&) { notify(); });
  while (!event.ready()) {
    if (device_.Progress()) {
      fiber_->TakeNews(/*expected=*/false);
    } else {
      if (wait_.active()) WatchAfter(context_->spec.timeout);
      fiber_->AwaitNews();
    }
  }
}

void ProgramState::AwaitDevice(const base::Event& event) {
  wait_.BeginForDevice(self_->clock().now());
  AwaitEvent(event);
  wait_.EndForDevice();
}

void ProgramState::WatchAfter(absl::Duration after) {
  if (std::exchange(watching_, true)) return;
  self_->delayed_send(self_, ActorTimeout(after), watch_atom::value);
}

void ProgramState::OnWatch() {
  watching_ = false;
  if (!wait_.active() || ended_) return;
  const absl::Duration timeout = context_->spec.timeout;
  const absl::Duration waited = wait_.Elapsed(self_->clock().now());
  if (waited < timeout) return WatchAfter(timeout - waited);
  // The event of the wait completes with this status, and resumes the fiber.
  const auto abort = [timeout](comm::Communicator& group) {
    group.Abort(absl::DeadlineExceededError(
        absl::StrCat("no end within ", absl::FormatDuration(timeout), ": ",
                     WhatItWaitsFor(group))));
  };
  if (wait_.group() != nullptr) return abort(*wait_.group());
  // The device waits for peers, or computes.
  for (const auto& group : device_.WaitingGroups()) abort(*group);
  WatchAfter(timeout);
}

void ProgramState::End(const absl::Status& status) {
  if (context_ == nullptr || std::exchange(ended_, true)) return;
  if (!status.ok()) {
    // The report comes before the peers learn of it, and fail as well.
    context_->outcome.Fail(status);
  }
  // Peers that hear of the end of its groups see why.
  context_->returned[rank_] = status.ok();
  if (context_->on_end) context_->on_end(rank_, status);
  if (!status.ok()) context_->groups.Abort(status);
  context_->groups.Leave(rank_);
  context_->outcome.End(rank_);
}

ProgramActor::behavior_type ProgramBehavior(ProgramState::Self self,
                                            ProgramContextPtr context,
                                            int rank) {
  TellExceptions(self, [=](const absl::Status& status) {
    self->state.End(absl::Status(
        status.code(), absl::StrCat("rank ", rank, ": ", status.message())));
  });
  self->state.Init(self, std::move(context), rank);
  return {[=](begin_atom) { self->state.Resume(); },
          [=](resume_atom) { self->state.OnResume(); },
          [=](drive_atom) { self->state.OnDrive(); },
          [=](watch_atom) { self->state.OnWatch(); }};
}

std::vector<ProgramActor> SpawnProgram(caf::actor_system& system,
                                       const ProgramContextPtr& context) {
  std::vector<ProgramActor> ranks;
  for (int rank = context->first; rank < context->last; ++rank) {
    ranks.push_back(SpawnStrand(system, ProgramBehavior, context, rank));
  }
  for (const ProgramActor& rank : ranks) {
    caf::anon_send(rank, begin_atom::value);
  }
  return ranks;
}

}  // namespace troupe::actors
