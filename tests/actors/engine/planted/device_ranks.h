// Runs the ranks of a small job on emulated GPUs without actors, with the step
// engine, device and groups of production. Each rank's engine is a fiber of one
// thread, and a seed chooses which one runs next. Thus a seed determines the
// order, and ThreadSanitizer sees all of it.
//
//   const EmulatedWorld world(seed);
//   DeviceRanks ranks(fixture, seed);
//   const std::string outcome = ranks.Train(/*steps=*/4);
//
// The outcome is a line with the losses, and with hashes of parameters and
// optimizer states after the second step (a snapshot, while training goes on)
// and after the last; or with the first error. It is the same for all seeds.
//
// Threads: one.

#ifndef TESTS_ACTORS_ENGINE_PLANTED_DEVICE_RANKS_H_
#define TESTS_ACTORS_ENGINE_PLANTED_DEVICE_RANKS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/engine/fiber/strand_fiber.h"
#include "actors/engine/step_runner.h"
#include "comm/communicator.h"
#include "nn/random/philox.h"
#include "tests/actors/engine/engine_fixture.h"

namespace troupe::actors {

// The compute strand of one rank, without its actor.
class DeviceRank : public StepRunner::Host {
 public:
  DeviceRank(const EngineFixture& fixture, int rank, const RankGroups* groups,
             std::int64_t steps);
  ~DeviceRank();

  absl::Status Open();
  // `stages`: the rank of each stage of this rank's replica.
  void Wire(std::vector<DeviceRank*> stages) { stages_ = std::move(stages); }

  // Takes in finished collectives and transfers, drives the device, and resumes
  // the engine until it waits or yields.
  absl::Status Turn();
  bool done() const;
  // Returns the rank's part of the outcome, once it is done.
  std::string Results() const;

  void Launch(int action, pipeline::GroupId group,
              const comm::Collective& collective,
              const comm::Event& after) override;
  void Send(int stage, bool forward, int micro_batch,
            const nn::TensorList& tensors, const base::Event& ready) override;

 private:
  struct Launched {
    std::int64_t step;
    int action;
    absl::StatusOr<comm::Event> done;
  };

  absl::Status Train();
  absl::Status TakeIn();
  absl::Status TakeLosses();

  const EngineFixture& fixture_;
  const int rank_;
  const RankGroups* const groups_;
  const std::int64_t steps_;
  std::optional<StrandFiber> fiber_;
  std::unique_ptr<StepRunner> runner_;
  std::vector<DeviceRank*> stages_;
  std::deque<Launched> launched_;
  std::deque<Transfer> mail_;
  absl::Status failure_;
  bool ended_ = false;
  std::vector<LossBits> losses_;
  std::vector<PendingSnapshot> snapshots_;
};

class DeviceRanks {
 public:
  DeviceRanks(const EngineFixture& fixture, std::uint64_t seed)
      : fixture_(fixture), seed_(seed) {}

  std::string Train(std::int64_t steps);

 private:
  absl::Status Open(std::int64_t steps);
  absl::Status Run();

  const EngineFixture& fixture_;
  const std::uint64_t seed_;
  std::vector<RankGroups> groups_;  // one for each rank
  std::vector<std::unique_ptr<DeviceRank>> ranks_;
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_ENGINE_PLANTED_DEVICE_RANKS_H_
