#include "actors/engine/reducer.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::actors {

std::string PartOf(const pipeline::Action& collective, int chunks) {
  if (collective.kind == pipeline::ActionKind::kReduceLoss) return "loss";
  if (collective.kind == pipeline::ActionKind::kReduceFindings) {
    return "norms of gradients";
  }
  const bool tied = collective.kind == pipeline::ActionKind::kReduceTied;
  return absl::StrCat(
      tied ? "tied bucket " : "bucket ", collective.index,
      chunks == 1 ? "" : absl::StrCat(" of chunk ", collective.chunk));
}

comm::Communicator& Reducer::GroupOf(pipeline::GroupId group) const {
  if (group == pipeline::GroupId::kWorld) return *options_.world;
  if (!pipeline::IsTied(group)) return *options_.dp;
  return *options_.tied[pipeline::TieOf(group)];
}

absl::StatusOr<bool> Reducer::Start(int action, pipeline::GroupId group,
                                    const comm::Collective& collective,
                                    const comm::Event& after) {
  comm::Communicator& comm = GroupOf(group);
  // One rank has its sum already, but an update it still has to make.
  if (comm.size() == 1 && collective.kind == comm::CollectiveKind::kAllReduce) {
    return true;
  }
  if (options_.run_inline) {
    TROUPE_CHECK(after.ready(), "inline reductions are for work of the host");
    TROUPE_RETURN_IF_ERROR(wait_->RunInline(comm, collective));
    return true;
  }
  ++in_flight_;
  launcher_->Launch(action, group, collective, after);
  return false;
}

}  // namespace troupe::actors
