// The connection of a program's processes: they tell each other which ranks
// have returned, why one has failed, and the ids of groups by NCCL.
//
//   TROUPE_ASSIGN_OR_RETURN(auto links,
//                           ProgramLinks::Open(spec, /*by_nccl=*/false));
//   auto context = std::make_shared<ProgramContext>(spec, links->groups());
//   links->Attach(context);
//   auto ranks = SpawnProgram(system, context);
//   links->Wait(*context);                // until all ranks of all have ended
//
// A process reports how each of its ranks has ended, before it ends their
// groups, and stays until all ranks of all processes have ended: so all return
// the cause of a failure, not what followed from it. A process that ends
// without a report is a failure, too.
//
// Errors: those of MeetProcesses(); kInvalidArgument if the processes do not
// have all ranks of the program.
// Threads: the one that runs the program. Wait() blocks it.

#ifndef ACTORS_PROGRAM_PROGRAM_LINKS_H_
#define ACTORS_PROGRAM_PROGRAM_LINKS_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/program/program_groups.h"
#include "actors/program/program_spec.h"
#include "actors/program/program_strand.h"
#include "actors/setup/group_makers.h"
#include "comm/fabric.h"

namespace troupe::actors {

class ProgramLinks {
 public:
  // Meets the other processes, and connects to them. `by_nccl`: whether NCCL
  // makes the groups (GroupsAreOfNccl()), the same in all processes.
  static absl::StatusOr<std::unique_ptr<ProgramLinks>> Open(
      const ProgramSpec& spec, bool by_nccl);
  ~ProgramLinks();

  // Returns the maker of groups over the processes, of ranks on the spec's
  // device. This outlives it.
  const GroupMaker& groups() const { return make_group_; }
  // Sets the ranks of this process, and lets the others know of their ends. To
  // be called once, before the ranks begin.
  void Attach(const ProgramContextPtr& context);
  // Waits until the ranks of all processes have ended. Ends what waits for
  // ranks that have returned.
  void Wait(ProgramContext& context);

 private:
  class EndReceiver;
  struct Shared;

  explicit ProgramLinks(std::shared_ptr<Shared> shared)
      : shared_(std::move(shared)) {}
  // Sends the words to all other processes. A link that is lost has its own
  // report.
  void Say(const std::string& words);

  // State that callbacks of the fabric share.
  const std::shared_ptr<Shared> shared_;
  std::shared_ptr<comm::Fabric> fabric_;
  GroupMaker make_group_;
  bool by_nccl_ = false;  // whether those groups are NCCL's
};

}  // namespace troupe::actors

#endif  // ACTORS_PROGRAM_PROGRAM_LINKS_H_
