#include "comm/nccl/nccl_backend.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::comm {
namespace {

NcclBackend& TheBackend() {
  static NcclBackend backend = nullptr;
  return backend;
}

absl::Status Check(const NcclGroupOptions& options) {
  const auto invalid = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("group \"", options.name, "\" by NCCL: ", what));
  };
  const std::set<int> ranks(options.ranks.begin(), options.ranks.end());
  if (ranks.empty() || ranks.size() != options.ranks.size()) {
    return invalid("ranks are none, or one comes twice; name each once");
  }
  if (ranks.size() > static_cast<std::size_t>(kLocalGroupSizeMax)) {
    return invalid(absl::StrCat("ranks must be at most ", kLocalGroupSizeMax));
  }
  const std::set<int> local(options.local.begin(), options.local.end());
  if (local.empty() || local.size() != options.local.size() ||
      *local.begin() < 0 || *local.rbegin() >= static_cast<int>(ranks.size())) {
    return invalid("local has no place of ranks, or one twice; name each once");
  }
  if (options.in_flight_max < 1)
    return invalid("in_flight_max must be at least 1");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Group> MakeNcclGroup(const NcclGroupOptions& options,
                                    Store& store) {
  if (!HasNccl()) {
    return absl::UnimplementedError(absl::StrCat(
        "group \"", options.name, "\": this program was built without NCCL, ",
        "which reduces between GPUs; build it with --config=cuda"));
  }
  TROUPE_RETURN_IF_ERROR(Check(options));
  return TheBackend()(options, store);
}

bool HasNccl() { return TheBackend() != nullptr; }

void SetNcclBackend(NcclBackend backend) {
  TROUPE_CHECK(TheBackend() == nullptr, "a program links one NCCL");
  TheBackend() = backend;
}

}  // namespace troupe::comm
