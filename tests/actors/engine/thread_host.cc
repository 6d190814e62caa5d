#include "tests/actors/engine/thread_host.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "absl/time/time.h"
#include "comm/local/local_group.h"
#include "gtest/gtest.h"
#include "tests/actors/engine/host_fixture.h"

namespace troupe::actors {

absl::Status ThreadWait::RunInline(comm::Communicator& comm,
                                   const comm::Collective& collective) {
  return comm.RunInline(collective, absl::Seconds(60));
}

void ThreadCollectives::Start(std::int64_t step, int action,
                              pipeline::GroupId group,
                              const comm::Collective& collective,
                              const comm::Event& after) {
  const absl::StatusOr<comm::Event> event =
      groups_->Of(group).Start(collective, after);
  ASSERT_TRUE(event.ok()) << event.status();
  in_flight_.push_back({step, action, *event});
}

bool ThreadCollectives::End(
    const std::function<absl::Status(std::int64_t, int)>& end) {
  const auto done = std::stable_partition(
      in_flight_.begin(), in_flight_.end(),
      [](const auto& launched) { return !launched.done.ready(); });
  const std::vector<Launched> finished(done, in_flight_.end());
  in_flight_.erase(done, in_flight_.end());
  for (const Launched& launched : finished) {
    EXPECT_TRUE(launched.done.status().ok()) << launched.done.status();
    const absl::Status ended = end(launched.step, launched.action);
    EXPECT_TRUE(ended.ok()) << ended;
  }
  return !finished.empty();
}

bool ThreadCollectives::Progress() {
  bool progress = false;
  groups_->ForEachOfTable([&](comm::Communicator& group) {
    progress = progress || group.Progress();
  });
  return progress;
}

void ThreadHost::Launch(int action, pipeline::GroupId group,
                        const comm::Collective& collective,
                        const comm::Event& after) {
  collectives_.Start(runner_->launched_step(), action, group, collective,
                     after);
}

void ThreadHost::Send(int stage, bool forward, int micro_batch,
                      const nn::TensorList& tensors, const base::Event& ready) {
  stages_[stage]->Post(
      TransferOf(*runner_, stage, forward, micro_batch, tensors, ready));
}

void ThreadHost::Post(const Transfer& transfer) {
  absl::MutexLock lock(&mutex_);
  mail_.push_back(transfer);
}

bool ThreadHost::Deliver() {
  bool any = collectives_.End([&](std::int64_t step, int action) {
    return runner_->CollectiveDone(step, action);
  });
  std::vector<Transfer> mail;
  {
    absl::MutexLock lock(&mutex_);
    mail.swap(mail_);
  }
  for (const Transfer& transfer : mail) {
    const absl::Status delivered = runner_->Deliver(transfer);
    EXPECT_TRUE(delivered.ok()) << delivered;
    any = true;
  }
  return any;
}

void ThreadHost::AwaitNews() {
  while (!Deliver()) {
    if (!collectives_.Progress()) sched_yield();
  }
}

void ThreadHost::TakeNews(bool expected) {
  if (!expected) return;
  collectives_.Progress();
  Deliver();
}

ThreadRanks::ThreadRanks(const EngineFixture& fixture)
    : fixture_(fixture), groups_(MakeTestGroups(fixture.plan().mesh)) {
  const pipeline::Plan& plan = fixture.plan();
  const pipeline::Mesh& mesh = plan.mesh;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    hosts_.push_back(std::make_unique<ThreadHost>(&groups_[rank]));
    StepRunner::Setup setup;
    setup.rank = rank;
    setup.spec = &fixture.spec();
    setup.plan = &plan;
    setup.train_table = plan.RankPlanOf(rank).train;
    setup.groups = &groups_[rank];
    runners_.push_back(
        StepRunner::Create(setup, hosts_[rank].get(), hosts_[rank].get())
            .value());
  }
  for (int rank = 0; rank < mesh.size(); ++rank) {
    hosts_[rank]->Wire(runners_[rank].get(), StagesOf(plan, rank, hosts_));
  }
}

void ThreadRanks::Run(std::int64_t steps) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < static_cast<int>(runners_.size()); ++rank) {
    threads.emplace_back([this, rank, steps] {
      for (std::int64_t step = 0; step < steps; ++step) {
        const absl::Status ran = runners_[rank]->RunStep(
            StepKind::kTrain, step, fixture_.Batches(rank, step));
        ASSERT_TRUE(ran.ok()) << "rank " << rank << ": " << ran;
      }
      const absl::Status ended = runners_[rank]->FinishTail();
      ASSERT_TRUE(ended.ok()) << "rank " << rank << ": " << ended;
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace troupe::actors
