// The collectives that a model has started and that have not ended: reductions
// of its gradients, and those of a communication hook (comm_hook.h).
//
//   StartedCollectives started(rank.strand());
//   started.set_hands_over(rank.strand().HandsOver(bytes));
//   started.Start({step, action}, group, collective, after, on_device);
//   started.Drive();                  // between two pieces of a backward
//   started.EndSome(engine);
//
// A rank with a free core hands its collectives to its communication strand.
// Otherwise Drive() moves them, and the strand does while it waits (Oldest()):
// so a reduction goes on beside the backward, as far as its peers have come.
//
// Errors: base::StatusError, those of the group. Threads: the rank's own.

#ifndef TROUPE_INTERNAL_STARTED_COLLECTIVES_H_
#define TROUPE_INTERNAL_STARTED_COLLECTIVES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "actors/program/program_rank.h"
#include "base/event.h"
#include "base/status_error.h"
#include "comm/communicator.h"

namespace troupe {

class StartedCollectives {
 public:
  // The action that a collective belongs to.
  struct Place {
    std::int64_t step = 0;
    int action = 0;
  };
  struct Ended {
    Place of;
    base::Event done;                    // completed, with any status
    std::function<absl::Status()> then;  // to be called next; null: nothing
  };

  // `strand` outlives it.
  explicit StartedCollectives(actors::ProgramRank& strand) : strand_(strand) {}

  // Sets whether the communication strand gets collectives of the host.
  void set_hands_over(bool hands_over) { hands_over_ = hands_over; }

  // Starts a collective in `group`. One on a device is work of this rank's
  // device, which only this strand calls.
  void Start(const Place& of, const std::shared_ptr<comm::Communicator>& group,
             const comm::Collective& collective, const comm::Event& after,
             bool on_device);
  // Adds something that was started in `group` and has ended when `done` has
  // completed and `then`, unless it is null, has run.
  void Add(const Place& of, comm::Communicator& group, const base::Event& done,
           std::function<absl::Status()> then);

  bool empty() const { return in_flight_.empty(); }
  // Removes and returns the oldest that has completed of those from index
  // `next` on, which becomes the index behind it; none has: nullopt. Others may
  // be started between two calls.
  std::optional<Ended> TakeEnded(std::size_t& next);
  // Ends the actions of `engine` whose collectives have completed. Returns
  // whether there was one. Throws the error of one that failed.
  template <typename Engine>
  bool EndSome(Engine& engine);
  // Returns the oldest one, for a wait.
  actors::StartedIn Oldest() const;
  // Runs some chunks of the oldest one, unless another strand does.
  void Drive();
  // Ends all of them with `why` on all ranks: peers use the memory no more.
  void Abort(const absl::Status& why);

 private:
  struct InFlight {
    Ended end;
    comm::Communicator* group;
    bool handed_over;  // the communication strand or the device drives it
  };

  actors::ProgramRank& strand_;
  bool hands_over_ = false;
  std::deque<InFlight> in_flight_;
};

template <typename Engine>
bool StartedCollectives::EndSome(Engine& engine) {
  bool any = false;
  std::size_t next = 0;
  while (auto ended = TakeEnded(next)) {
    const auto [step, action] = ended->of;
    const absl::Status status = ended->done.status();
    if (status.ok() && ended->then) base::OrThrow(ended->then());
    base::OrThrow(status.ok() ? engine.CollectiveDone(step, action, ended->done)
                              : engine.CollectiveFailed(step, action, status));
    any = true;
  }
  return any;
}

}  // namespace troupe

#endif  // TROUPE_INTERNAL_STARTED_COLLECTIVES_H_
