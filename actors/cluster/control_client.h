// Blocking requests to the coordinator, for a process that has no actors yet:
// it joins the job, exchanges addresses (comm/store.h), and gets the
// supervisor. If the job fails, every call returns the failure. The agent
// (agent.h), not this class, detects the loss of process 0, since it has
// received any earlier failure.
//
//   ControlClient client(system, coordinator);
//   TROUPE_ASSIGN_OR_RETURN(Welcome welcome, client.Join(join, timeout));
//   TROUPE_RETURN_IF_ERROR(client.Set("data/1", "10.0.0.8:40112"));
//   TROUPE_ASSIGN_OR_RETURN(SupervisorActor supervisor,
//                           client.AwaitSupervisor(generation, timeout));
//
// Threads: any; calls are serialised by a mutex.

#ifndef ACTORS_CLUSTER_CONTROL_CLIENT_H_
#define ACTORS_CLUSTER_CONTROL_CLIENT_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "actors/cluster/cluster_messages.h"
#include "caf/scoped_actor.hpp"
#include "comm/store.h"

namespace troupe::actors {

class ControlClient : public comm::Store {
 public:
  // `give_up` is ClusterOptions::give_up.
  ControlClient(caf::actor_system& system, CoordinatorActor coordinator,
                std::shared_ptr<absl::Notification> give_up = nullptr);

  // Returns the address that answers are sent to. A Refused sent there ends
  // every current and later call.
  caf::strong_actor_ptr address() const { return address_; }
  // Returns the error with which all calls fail at once; ok if they do not.
  absl::Status refused() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return refused_;
  }

  // Joins the job, and waits until all processes have.
  //   kDeadlineExceeded: not all processes have joined by then. Other errors
  //     say why the processes do not agree, or have failed.
  absl::StatusOr<Welcome> Join(const actors::Join& join, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until the supervisor is spawned, and returns it.
  absl::StatusOr<SupervisorActor> AwaitSupervisor(std::int32_t generation,
                                                  absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Status Set(const std::string& key, std::string value) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::string> Get(const std::string& key,
                                  absl::Duration timeout) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns, without waiting, the error with which calls would fail at once.
  absl::Status Check() override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Sends `message`, and waits for an Answer for which `accept` returns true.
  template <typename Answer, typename Message, typename Accept>
  absl::StatusOr<Answer> Call(const Message& message, absl::Duration timeout,
                              Accept accept)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  caf::scoped_actor self_ ABSL_GUARDED_BY(mutex_);
  const CoordinatorActor coordinator_;
  const std::shared_ptr<absl::Notification> give_up_;
  caf::strong_actor_ptr address_;
  bool awaits_end_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status refused_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_CONTROL_CLIENT_H_
