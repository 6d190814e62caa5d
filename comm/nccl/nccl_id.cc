#include "comm/nccl/nccl_id.h"

#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "comm/nccl/nccl_calls.h"

namespace troupe::comm::internal {

absl::StatusOr<NcclId> NcclId::Exchange(const NcclGroupOptions& options,
                                        Store& store) {
  NcclId id(options.name,
            absl::StrCat("nccl/", options.generation, "/", options.name, "/",
                         absl::StrJoin(options.ranks, ",")));
  if (absl::c_linear_search(options.local, 0)) {
    TROUPE_RETURN_IF_ERROR(id.Make());
    TROUPE_RETURN_IF_ERROR(store.Set(
        id.key_, std::string(id.id_->internal, sizeof(id.id_->internal))));
    return id;
  }
  if (options.later_id != nullptr) {
    id.later_ = options.later_id;
    return id;
  }
  const absl::StatusOr<std::string> text = store.Get(id.key_, options.timeout);
  if (absl::IsDeadlineExceeded(text.status())) return Late(options);
  TROUPE_RETURN_IF_ERROR(text.status());
  TROUPE_RETURN_IF_ERROR(id.Read(*text));
  return id;
}

absl::Status NcclId::Late(const NcclGroupOptions& options) {
  return absl::DeadlineExceededError(absl::StrCat(
      "group \"", options.name, "\": rank ", options.ranks[0],
      " has not made it within ", absl::FormatDuration(options.timeout),
      "; make it in all its ranks, and all groups in one order"));
}

absl::Status NcclId::Make() {
  ncclUniqueId id;
  const ncclResult_t made = ncclGetUniqueId(&id);
  if (made != ncclSuccess) {
    return NcclStatus(made, nullptr,
                      absl::StrCat("group \"", group_, "\": ncclGetUniqueId"));
  }
  id_ = id;
  return absl::OkStatus();
}

absl::Status NcclId::Read(const std::string& text) {
  ncclUniqueId id;
  if (text.size() != sizeof(id.internal)) {
    return absl::InvalidArgumentError(
        absl::StrCat("group \"", group_, "\": an id of NCCL's has ",
                     sizeof(id.internal), " bytes, and ", text.size(),
                     " came; give all processes one version of NCCL"));
  }
  std::memcpy(id.internal, text.data(), text.size());
  id_ = id;
  return absl::OkStatus();
}

absl::StatusOr<bool> NcclId::Find() {
  if (found()) return true;
  const absl::StatusOr<std::string> text =
      later_->Get(key_, absl::ZeroDuration());
  if (absl::IsDeadlineExceeded(text.status())) return false;
  TROUPE_RETURN_IF_ERROR(text.status());
  TROUPE_RETURN_IF_ERROR(Read(*text));
  return true;
}

}  // namespace troupe::comm::internal
