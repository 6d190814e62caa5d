// A communication strand among fakes launches the collectives that its compute
// strand requests, and none of another generation.

#include "actors/strands/comm_strand.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "actors/setup/job_setup.h"
#include "gtest/gtest.h"
#include "tests/actors/simulated_system.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

using Log = std::vector<std::string>;

ComputeActor::behavior_type LoggingCompute(ComputeActor::pointer, Log* log) {
  return {
      [](const ComputePeersPtr&) {},
      [](const RunSteps&) {},
      [=](const Launched& launched) {
        log->push_back(absl::StrCat("action ", launched.action,
                                    " of generation ", launched.generation,
                                    ": ", launched.code));
      },
      [](const Transfer&) {},
      [](resume_atom) {},
      [](drive_atom) {},
      [](snapshot_atom, const TakeSnapshot&) { return SnapshotPtr(); },
  };
}

// CAF takes the address of the arguments, so there is one (docs/caf.md).
SupervisorActor::behavior_type NoSupervisor(SupervisorActor::pointer, Log*) {
  return {[](begin_atom) {},
          [](const Progress&) {},
          [](const Alive&) {},
          [](const Evaluated&) {},
          [](const SnapshotTaken&) {},
          [](const CheckpointOpened&) {},
          [](const ShardSaved&) {},
          [](const CheckpointSaved&) {},
          [](const Failure&) {},
          [](const RankWaits&) {},
          [](halt_atom) {},
          [](reported_atom) {},
          [](watch_atom) {},
          [](ask_atom) {}};
}

TEST(CommStrandTest, OldLaunchesAreDropped) {
  SimulatedSystem system;
  Log log;
  JobSpec spec = TinyCnnJob(1, 1);
  spec.plan.inline_bytes = 0;
  const ProcessContextPtr process =
      SetUpJob(spec, /*observer=*/nullptr)->process;
  CommActor comm = system.get().spawn(CommBehavior, process->ranks[0],
                                      system.get().spawn(NoSupervisor, &log),
                                      system.get().spawn(LoggingCompute, &log));
  for (std::int32_t generation : {0, 1, 2}) {
    Launch launch;
    launch.generation = generation;
    launch.action = 7;
    launch.collective = comm::Barrier();
    caf::anon_send(comm, launch);
    system.RunAll();
  }
  EXPECT_EQ(absl::StrJoin(log, ", "), "action 7 of generation 1: 0");
  caf::anon_send_exit(comm, caf::exit_reason::user_shutdown);
}

}  // namespace
}  // namespace troupe::actors
