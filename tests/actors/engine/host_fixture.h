// Parts that the hosts of a step engine share in tests: a host makes the
// transfers that its runner sends, and knows the host of each stage.
//
//   Transfer transfer =
//       TransferOf(*runner_, stage, forward, micro_batch, tensors, ready);
//   hosts[rank]->Wire(StagesOf(plan, rank, hosts));

#ifndef TESTS_ACTORS_ENGINE_HOST_FIXTURE_H_
#define TESTS_ACTORS_ENGINE_HOST_FIXTURE_H_

#include <memory>
#include <vector>

#include "actors/engine/step_runner.h"
#include "pipeline/plan.h"

namespace troupe::actors {

// Returns the transfer of one StepRunner::Host::Send(), in the runner's present
// step.
inline Transfer TransferOf(const StepRunner& runner, int stage, bool forward,
                           int micro_batch, const nn::TensorList& tensors,
                           const base::Event& ready) {
  Transfer transfer;
  transfer.stage = stage;
  transfer.step = runner.step();
  transfer.kind = runner.kind();
  transfer.forward = forward;
  transfer.micro_batch = micro_batch;
  transfer.tensors = tensors;
  transfer.ready = ready;
  return transfer;
}

// Returns the host of each stage of the rank's replica; `hosts` are by rank.
template <typename Host>
std::vector<Host*> StagesOf(const pipeline::Plan& plan, int rank,
                            const std::vector<std::unique_ptr<Host>>& hosts) {
  const int dp = plan.mesh.CoordsOf(rank).dp;
  std::vector<Host*> stages;
  for (const pipeline::StagePlan& stage : plan.stages) {
    stages.push_back(hosts[plan.mesh.RankOf({dp, stage.place.pp})].get());
  }
  return stages;
}

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_ENGINE_HOST_FIXTURE_H_
