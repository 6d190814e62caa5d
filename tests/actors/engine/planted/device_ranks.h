// The ranks of a small job on emulated GPUs, without actors: the step engine,
// the device and the groups of production, each rank's engine on a fiber, all
// in one thread, which goes from one to another as a seed says. So a seed gives
// one order, and ThreadSanitizer sees all of it.
//
//   const EmulatedWorld world(seed);
//   DeviceRanks ranks(fixture, seed);
//   const std::string outcome = ranks.Train(/*steps=*/4);
//
// The outcome is a line: the losses, and hashes of parameters and optimizer
// states, after the second step (a snapshot, while training goes on) and after
// the last; or the first error. It is the same for all seeds.
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

#include "actors/engine/step_runner.h"
#include "actors/engine/strand_fiber.h"
#include "comm/communicator.h"
#include "nn/random/philox.h"
#include "tests/actors/engine/engine_fixture.h"

namespace troupe::actors {

// One rank's strand, without its actor.
class DeviceRank : public StepRunner::Host {
 public:
  DeviceRank(const EngineFixture& fixture, int rank, const RankGroups* groups,
             std::int64_t steps);
  ~DeviceRank();

  absl::Status Open();
  // `stages`: who has each stage of this rank's replica.
  void Wire(std::vector<DeviceRank*> stages) { stages_ = std::move(stages); }

  // Takes in what came, drives the device, and goes on until the engine waits
  // or looks up.
  absl::Status Turn();
  bool done() const;
  // What it has computed, when it is done.
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
  std::vector<RankGroups> groups_;  // by rank
  std::vector<std::unique_ptr<DeviceRank>> ranks_;
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_ENGINE_PLANTED_DEVICE_RANKS_H_
