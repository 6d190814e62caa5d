// Links between the stages of a simulation that are as slow as a seed has them:
// what is sent is under way until the scheduler lets its link go on.
//
//   SlowLinks links(system, scheduler);
//   hooks.wrap_link = [&](auto link) { return links.Over(std::move(link)); };
//
// Each way from one rank to one stage is a task of the scheduler's, which is
// eager or lazy as actors are: activations pile up on one link while others
// deliver at once. Order is kept on a link, and nowhere else.
//
// Threads: one. Lifetime: between the scheduler and the end of the run.

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

  // A rank's way to the stages of its replica.
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
