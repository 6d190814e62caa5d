// The job as one node of a simulated cluster runs it: reads and writes through
// the node's own disk and training set, which may fail, at points where the
// scheduler may let others run.
//
//   NodeJob job(scheduler, options, is_gone);
//   absl::Status status = job.Prepare(/*decision=*/nullptr);
//   job.Join(welcome);
//   status = job.MakeRanks(links, on_lost);
//   SpawnRanks(system, job.process(), supervisor, job.TakeCheckpoint());
//   job.LetGoOfLinks();
//
// Threads: one. Lifetime: longer than its actors; the options outlive it.

#ifndef TESTS_ACTORS_CLUSTER_NODE_JOB_H_
#define TESTS_ACTORS_CLUSTER_NODE_JOB_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "actors/cluster/cluster_messages.h"
#include "actors/setup/job_setup.h"
#include "actors/setup/test_hooks.h"
#include "actors/sim/preemption_points.h"
#include "actors/sim/seeded_scheduler.h"
#include "tests/actors/cluster/node_faults.h"
#include "tests/actors/cluster/simulated_links.h"

namespace troupe::actors {

// The job of a node of a simulated cluster, and how the node fails.
struct NodeOptions {
  int node = 0;
  ClusterOptions cluster;  // .process may be another number than the node's
  JobSpec spec;
  // Options of comm::FabricOptions.
  std::size_t eager_bytes = 0, piece_bytes = 64;
  std::string version = kTroupeVersion;
  bool broken = false;    // whether setting up its ranks fails
  absl::Duration slow;    // delay before it sets up its ranks
  int disk_full_at = -1;  // write at which its disk is full; -1: never
  int bad_read = -1;      // read of its training set that fails; -1: none
};

class NodeJob {
 public:
  // `is_gone`: whether the node has died.
  NodeJob(SeededScheduler& scheduler, const NodeOptions& options,
          std::function<bool()> is_gone);

  // Makes all but the ranks. `decision`: that of process 0; null in process 0.
  absl::Status Prepare(const Decision* decision);
  // Makes the process a member of the job that `welcome` describes.
  void Join(const Welcome& welcome);
  // Makes the fabric and the ranks. `on_lost` is called when the fabric loses a
  // process.
  absl::Status MakeRanks(
      SimulatedLinks& links,
      std::function<void(int process, const absl::Status& why)> on_lost);
  // Releases the process. Part of ClusterJob::Leave(): the last actor to end
  // closes the links.
  void LetGoOfLinks();

  // Returns the process; null before Prepare(), and once it is released.
  const std::shared_ptr<ProcessContext>& process() const {
    return setup_.process;
  }
  std::shared_ptr<const Checkpoint> TakeCheckpoint() {
    return std::move(setup_.checkpoint);
  }
  // Whether a rank here has made a step, so that the job had begun.
  bool trained() const { return trained_; }
  bool disk_was_full() const { return files_.was_full(); }
  bool data_was_bad() const { return train_->was_bad(); }

 private:
  const NodeOptions& options_;
  TestHooks hooks_;
  PreemptionPoints points_;
  base::PosixFileSystem disk_;
  NodeFiles files_;
  const std::shared_ptr<NodeData> train_;
  JobSetup setup_;
  bool trained_ = false;
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_CLUSTER_NODE_JOB_H_
