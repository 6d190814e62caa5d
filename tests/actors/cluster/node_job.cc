#include "tests/actors/cluster/node_job.h"

#include "actors/setup/rank_setup.h"
#include "actors/strands/fabric_stage_link.h"
#include "base/check.h"
#include "comm/fabric.h"

namespace troupe::actors {

NodeJob::NodeJob(SeededScheduler& scheduler, const NodeOptions& options,
                 std::function<bool()> is_gone)
    : options_(options),
      points_(scheduler),
      files_(disk_, std::move(is_gone), options_.disk_full_at),
      train_(
          std::make_shared<NodeData>(options_.spec.train, options_.bad_read)) {
  hooks_.window_max = 1 + scheduler.draws().Bits32() % 4;
  hooks_.after_step = [this](int, std::int64_t, const nn::ParameterArena&) {
    trained_ = true;
  };
  hooks_.mailbox_rounds = [&scheduler] {
    return static_cast<int>(scheduler.draws().Bits32() % 4);
  };
}

absl::Status NodeJob::Prepare(const Decision* decision) {
  JobSpec spec = options_.spec;
  spec.train = points_.In(train_);
  spec.checkpoint.files = points_.In(&files_);
  spec.cluster = options_.cluster;
  TROUPE_ASSIGN_OR_RETURN(
      setup_, PrepareJob(spec, /*observer=*/nullptr, &hooks_, decision));
  return absl::OkStatus();
}

void NodeJob::Join(const Welcome& welcome) {
  ProcessContext& process = *setup_.process;
  process.links.number = options_.cluster.process;
  process.generation = welcome.generation;
  process.links.roster = std::make_shared<const Roster>(welcome.members);
}

absl::Status NodeJob::MakeRanks(
    SimulatedLinks& links,
    std::function<void(int process, const absl::Status& why)> on_lost) {
  if (options_.broken) {
    return absl::ResourceExhaustedError("no memory for its ranks");
  }
  ProcessContext& process = *setup_.process;
  const Roster& roster = *process.links.roster;
  const int number = process.links.number;
  comm::FabricOptions options;
  options.process = number;
  options.process_of = roster.ProcessesOfRanks();
  options.generation = process.generation;
  options.eager_bytes = options_.eager_bytes;
  options.piece_bytes = options_.piece_bytes;
  for (int p = 0; p < roster.processes(); ++p) {
    options.names.push_back(roster.Describe(p));
  }
  options.on_lost = std::move(on_lost);
  TROUPE_ASSIGN_OR_RETURN(process.links.fabric,
                          links.MakeFabric(options_.node, std::move(options)));
  TROUPE_ASSIGN_OR_RETURN(
      process.ranks,
      actors::MakeRanks(
          process, roster.FirstRankOf(number), roster.FirstRankOf(number + 1),
          [&](comm::FabricGroupOptions group) {
            group.chunk_bytes = 1;
            return process.links.fabric->MakeGroup(std::move(group));
          }));
  return absl::OkStatus();
}

void NodeJob::LetGoOfLinks() {
  const std::shared_ptr<ProcessContext> process = std::move(setup_.process);
  if (process != nullptr && process->links.fabric != nullptr) {
    RefuseTransfers(*process);
  }
}

}  // namespace troupe::actors
