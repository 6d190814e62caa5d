#include "tests/actors/cluster/simulated_links.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"

namespace troupe::actors {

class SimulatedLinks::Driver : public SeededScheduler::Task {
 public:
  Driver(SimulatedLinks& owner, SeededScheduler& scheduler, std::uint64_t id)
      : Task(id), owner_(owner), scheduler_(scheduler) {}

  void SetFabric(const std::shared_ptr<comm::Fabric>& fabric) {
    fabric_ = fabric;
  }
  void Wake() {
    if (queued_ || fabric_.expired()) return;
    queued_ = true;
    scheduler_.Enqueue(*this);
  }

  resume_result resume(caf::execution_unit*, std::size_t) override {
    queued_ = false;
    const std::shared_ptr<comm::Fabric> fabric = fabric_.lock();
    if (fabric == nullptr || !fabric->Progress()) owner_.in_vain_ = true;
    owner_.CountFrames();
    return awaiting_message;
  }

 private:
  SimulatedLinks& owner_;
  SeededScheduler& scheduler_;
  std::weak_ptr<comm::Fabric> fabric_;
  bool queued_ = false;
};

SimulatedLinks::SimulatedLinks(caf::actor_system& system,
                               SeededScheduler& scheduler,
                               SimulatedNetwork& network, int nodes,
                               std::uint64_t seed)
    : network_(network), links_(nodes, seed) {
  for (int node = 0; node < nodes; ++node) {
    drivers_.push_back(network_.Spawn(node, [&] {
      return std::make_unique<Driver>(*this, scheduler, system.next_actor_id());
    }));
  }
}

SimulatedLinks::~SimulatedLinks() = default;

absl::StatusOr<std::shared_ptr<comm::Fabric>> SimulatedLinks::MakeFabric(
    int node, comm::FabricOptions options) {
  options.links = links_.LinksOf(node);
  options.run_thread = false;
  // Real time does not pass in the simulation.
  options.abort_grace = absl::ZeroDuration();
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<comm::Fabric> fabric,
                          comm::Fabric::Make(std::move(options)));
  drivers_[node]->SetFabric(fabric);
  return fabric;
}

void SimulatedLinks::Wake() {
  if (std::exchange(in_vain_, false)) return;
  for (const auto& driver : drivers_) driver->Wake();
}

void SimulatedLinks::CountFrames() {
  const auto delivered = static_cast<std::int64_t>(links_.delivered());
  network_.Count(delivered - std::exchange(counted_, delivered));
}

void SimulatedLinks::SetCut(int a, int b, int by) {
  int& cuts = cuts_[std::minmax(a, b)];
  cuts += by;
  cuts > 0 ? links_.Cut(a, b) : links_.Heal(a, b);
}

void SimulatedLinks::OnFault(const Fault& fault, bool over) {
  switch (fault.kind) {
    case FaultKind::kCut:
      SetCut(fault.node, fault.peer, over ? -1 : 1);
      break;
    case FaultKind::kReset:
      links_.Reset(fault.node, fault.peer);
      break;
    case FaultKind::kPause:
      if (network_.is_up(fault.node)) {
        links_.Resume(fault.node);
      } else {
        links_.Pause(fault.node);
      }
      break;
    case FaultKind::kDie:
      if (fault.heard) links_.Lose(fault.node);
      links_.Pause(fault.node);
      break;
    case FaultKind::kStale:
      break;
  }
}

void SimulatedLinks::Thaw() {
  for (std::size_t node = 0; node < drivers_.size(); ++node) {
    links_.Resume(static_cast<int>(node));
  }
  for (auto& [link, cuts] : cuts_) {
    if (cuts > 0) links_.Heal(link.first, link.second);
    cuts = 0;
  }
}

}  // namespace troupe::actors
