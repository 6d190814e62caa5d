// What a process asks of the coordinator before it has actors: it joins, leaves
// and takes addresses (comm/store.h), and learns who supervises. Plain calls,
// which wait; each ends with the job's failure. That process 0 is lost, the
// agent says (agent.h): it knows whether there was a reason before.
//
//   ControlClient client(system, coordinator);
//   TROUPE_ASSIGN_OR_RETURN(Welcome welcome, client.Join(join, timeout));
//   TROUPE_RETURN_IF_ERROR(client.Set("data/1", "10.0.0.8:40112"));
//   TROUPE_ASSIGN_OR_RETURN(SupervisorActor supervisor,
//                           client.AwaitSupervisor(generation, timeout));
//
// Threads: any; one call at a time goes through.

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
  // `give_up`: of ClusterOptions.
  ControlClient(caf::actor_system& system, CoordinatorActor coordinator,
                std::shared_ptr<absl::Notification> give_up = nullptr);

  // Where answers come; Refused sent there ends every call, now and later.
  caf::strong_actor_ptr address() const { return address_; }
  // Why calls end at once; ok: they do not.
  absl::Status refused() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return refused_;
  }

  // kDeadlineExceeded: not all have joined by then. Otherwise the reason why
  // the processes do not belong together, or cannot go on.
  absl::StatusOr<Welcome> Join(const actors::Join& join, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<SupervisorActor> AwaitSupervisor(std::int32_t generation,
                                                  absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Status Set(const std::string& key, std::string value) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::string> Get(const std::string& key,
                                  absl::Duration timeout) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What calls would return at once.
  absl::Status Check() override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Sends `message`, and waits for an Answer that `accept` takes.
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
