#include "tests/actors/jobs/queued_job.h"

#include <utility>

#include "actors/job.h"
#include "actors/sim/simulation.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/queued/queued_kernels.h"
#include "tests/comm/guarded_group.h"

namespace troupe::actors {
namespace {

std::unique_ptr<nn::Kernels> InnerKernels() {
  nn::CpuKernelOptions options;
  options.onednn = false;
  return nn::CreateCpuKernels(options);
}

}  // namespace

JobSpec LeNetJob(int dp, int pp) {
  JobSpec spec = TinyCnnPipeline(dp, pp, kQueuedSteps);
  spec.kernels = InnerKernels;
  return spec;
}

bool Outcome::operator==(const Outcome& other) const {
  return status == other.status && reports.losses() == other.reports.losses() &&
         reports.evaluations.size() == other.reports.evaluations.size() &&
         (reports.evaluations.empty() ||
          reports.evaluations.back().loss ==
              other.reports.evaluations.back().loss);
}

Outcome OnQueuedDevices(JobSpec spec, std::uint64_t seed, const Wrap& wrap) {
  auto memory = std::make_shared<nn::GuardedMemory>(std::size_t{64} << 20);
  spec.device = {nn::DeviceType::kQueued, 0};
  spec.kernels = [memory, device = seed * 64]() mutable {
    return nn::CreateQueuedKernels(InnerKernels(), memory, device++);
  };
  SimulationOptions options;
  options.seed = seed;
  options.make_group = [&](const comm::LocalGroupOptions& group_options) {
    comm::Group group =
        comm::GuardGroup(comm::MakeLocalGroup(group_options), memory);
    for (auto& rank : group) {
      if (wrap) rank = wrap(std::move(rank));
    }
    return group;
  };
  Outcome outcome;
  outcome.status = Simulation(spec, options).Run(&outcome.reports).status();
  return outcome;
}

Outcome OnTheCpu(const JobSpec& spec) {
  Outcome outcome;
  outcome.status = RunJob(spec, &outcome.reports).status();
  return outcome;
}

}  // namespace troupe::actors
