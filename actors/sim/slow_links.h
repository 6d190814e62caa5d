// Links between the stages of a simulation, with delays that the seed chooses:
// a transfer is under way until the scheduler runs its link.
//
//   SlowLinks links(system, scheduler);
//   hooks.wrap_link = [&](auto link) { return links.Over(std::move(link)); };
//
// Each way from one rank to one stage is a task of the scheduler, which is
// eager or lazy as actors are: activations pile up on one link while others
// deliver at once. Transfers keep their order on one link, but not across
// links.
//
// Threads: one. Lifetime: made after the scheduler, destroyed after the run.

#ifndef ACTORS_SIM_SLOW_LINKS_H_
#define ACTORS_SIM_SLOW_LINKS_H_

#include <memory>
#include <vector>

#include "actors/sim/seeded_scheduler.h"
#include "actors/strands/stage_link.h"
#include "caf/actor_system.hpp"

namespace troupe::actors {

class SlowLinks {
 public:
  SlowLinks(caf::actor_system& system, SeededScheduler& scheduler);
  ~SlowLinks();

  // Wraps a rank's link to the stages of its replica.
  std::shared_ptr<StageLink> Over(std::shared_ptr<StageLink> link);

 private:
  class Link;
  class Way;

  Way& AddWay(std::shared_ptr<StageLink> link, int stage);

  caf::actor_system& system_;
  SeededScheduler& scheduler_;
  std::vector<std::unique_ptr<Way>> ways_;
};

}  // namespace troupe::actors

#endif  // ACTORS_SIM_SLOW_LINKS_H_
