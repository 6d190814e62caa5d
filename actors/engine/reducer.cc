#include "actors/engine/reducer.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::actors {

absl::StatusOr<bool> Reducer::Start(int action, pipeline::GroupId group,
                                    const comm::Collective& collective,
                                    const comm::Event& after) {
  if (comm::IsNoOp(collective, options_.groups->SizeOf(group))) {
    return true;
  }
  if (options_.run_inline) {
    TROUPE_CHECK(after.ready(), "inline reductions are for work of the host");
    TROUPE_RETURN_IF_ERROR(
        wait_->RunInline(options_.groups->Of(group), collective));
    return true;
  }
  ++in_flight_;
  launcher_->Launch(action, group, collective, after);
  return false;
}

}  // namespace troupe::actors
