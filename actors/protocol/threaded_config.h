// The configuration of a job's actor system that runs on threads.
//
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<ThreadSupply> threads,
//                           StartActorThreads(JobThreads(ranks)));
//   ThreadedConfig config(*threads);          // they outlive the system
//   caf::actor_system system(config);

#ifndef ACTORS_PROTOCOL_THREADED_CONFIG_H_
#define ACTORS_PROTOCOL_THREADED_CONFIG_H_

#include "actors/caf/strand_scheduler.h"
#include "actors/caf/thread_supply.h"
#include "actors/protocol/messages.h"

namespace troupe::actors {

struct ThreadedConfig : caf::actor_system_config {
  explicit ThreadedConfig(ThreadSupply& threads) {
    AddMessageTypes(*this);
    RunOnThreads(threads, *this);
  }
};

}  // namespace troupe::actors

#endif  // ACTORS_PROTOCOL_THREADED_CONFIG_H_
