// The processes of a job, as its coordinator sees them: which have joined,
// reported their actors, or left, and the generation that they belong to. It
// holds handles of actors, but sends nothing.
//
//   Membership members(/*processes=*/2);
//   members.SetOffer(offer);                      // the decisions of process 0
//   TROUPE_RETURN_IF_ERROR(members.Add(join, sender));
//   if (members.Admit(join)) Watch(members.agent(join.member.process));
//   for (auto& [to, welcome] : members.TakeWelcomes()) Send(to, welcome);
//   members.SetCrew(0), members.SetCrew(1);
//   if (members.AllHaveCrews()) Begin();
//   members.SetGone(1);                           // its farewell, or its loss
//   if (members.AllGone()) End();
//
// A process is numbered from 0; process 0 is the coordinator's own and has no
// agent. Threads: the coordinator's strand.

#ifndef ACTORS_CLUSTER_MEMBERSHIP_H_
#define ACTORS_CLUSTER_MEMBERSHIP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "actors/cluster/cluster_messages.h"
#include "actors/cluster/join_round.h"
#include "actors/setup/roster.h"

namespace troupe::actors {

class Membership {
 public:
  using Addressed = std::pair<caf::strong_actor_ptr, Welcome>;

  explicit Membership(int processes) : round_(processes), members_(processes) {}

  int size() const { return static_cast<int>(members_.size()); }
  // Whether `process` is the number of another process of the job.
  bool IsOther(int process) const { return process > 0 && process < size(); }

  // Adds a process that joins; `sender` is sent the welcome. Errors: those of
  // JoinRound::Add().
  absl::Status Add(const Join& join, caf::strong_actor_ptr sender);
  // Registers the agent of a process, even of one that is refused, and returns
  // true. Returns false if it has none, is none of the job, or is registered.
  bool Admit(const Join& join);
  // Sets the decisions of process 0 for all processes.
  void SetOffer(const Welcome& offer) { offer_ = offer; }
  // Returns the welcomes of all agents and senders of Add(), once all processes
  // have joined and the decisions are set; empty otherwise, and later.
  std::vector<Addressed> TakeWelcomes();
  // Returns the senders of Add() that have not been welcomed, or taken before.
  std::vector<caf::strong_actor_ptr> TakeJoining();

  // Whether all processes have joined.
  bool has_all() const { return round_.complete(); }
  // Returns the list of processes; empty until TakeWelcomes() has made it.
  const std::optional<Roster>& roster() const { return roster_; }
  // Returns the job's generation. The decisions must be set.
  std::int32_t generation() const { return offer_->generation; }
  // Whether the generation is that of the job; false before the decisions.
  bool IsOfJob(std::int32_t generation) const {
    return offer_ && generation == offer_->generation;
  }

  // Returns the agent of a process; null: none is registered.
  const caf::strong_actor_ptr& agent(int process) const {
    return members_[process].agent;
  }
  // Whether the actor is the agent of any process.
  bool IsAgent(const caf::strong_actor_ptr& actor) const;
  // Whether a message of this generation, from `sender`, is of the agent of
  // `process`.
  bool IsPeer(std::int32_t generation, int process,
              const caf::strong_actor_ptr& sender) const;
  // Returns the process with this agent, or -1.
  int ProcessOf(const caf::actor_addr& agent) const;

  // Notes that a process has reported its actors.
  void SetCrew(int process) { members_[process].has_crew = true; }
  bool HasCrew(int process) const { return members_[process].has_crew; }
  bool AllHaveCrews() const;

  // Notes that a process has left, or is lost.
  void SetGone(int process) { members_[process].gone = true; }
  bool IsGone(int process) const { return members_[process].gone; }
  bool AllGone() const;
  // Marks as gone all other processes without an agent, from which no farewell
  // will come.
  void GiveUpMissing();

  // Returns "process 1 (node7, pid 4711, ranks 2 to 3)", as far as it is known.
  std::string Describe(int process) const;
  // Returns "process 2, process 3 did not join".
  std::string DescribeMissing() const { return round_.DescribeMissing(); }
  // Returns "process 1 (node7, pid 4711, ranks 2 to 3) did not set up its
  // ranks", of all that have not reported their actors.
  std::string DescribeWithoutCrew() const;

 private:
  struct Process {
    caf::strong_actor_ptr agent;
    caf::strong_actor_ptr joining;  // receiver of its welcome; null: none waits
    std::uint64_t nonce = 0;
    bool has_crew = false;
    bool gone = false;  // whether it has sent Farewell, or is lost
  };

  JoinRound round_;
  std::vector<Process> members_;
  std::optional<Welcome> offer_;
  std::optional<Roster> roster_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_MEMBERSHIP_H_
