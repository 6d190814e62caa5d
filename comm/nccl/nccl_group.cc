#include "comm/nccl/nccl_group.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "comm/device/queued_communicator.h"
#include "comm/nccl/local_ranks.h"
#include "comm/nccl/nccl_calls.h"
#include "comm/nccl/nccl_rank.h"

namespace troupe::comm {
namespace {

using internal::LocalRanks;
using internal::NcclRank;

// NCCL's messages have no tags, so the group has no messages.
class NcclCommunicator final : public QueuedCommunicator {
 public:
  NcclCommunicator(std::shared_ptr<NcclRank> rank, NcclRank::AbortAll abort_all)
      : QueuedCommunicator("an NCCL group"),
        rank_(std::move(rank)),
        abort_all_(std::move(abort_all)) {}
  ~NcclCommunicator() override { rank_->Leave(); }

  int rank() const override { return rank_->rank(); }
  int size() const override { return rank_->size(); }
  bool UseDevice(DeviceWork* work) override {
    rank_->Use(work);
    return true;
  }
  absl::StatusOr<Event> Start(const Collective& collective,
                              Event after) override {
    return rank_->Start({&collective, 1}, after);
  }
  absl::StatusOr<Event> StartTogether(absl::Span<const Collective> collectives,
                                      const Event& after) override {
    return rank_->Start(collectives, after);
  }
  void UseRanges(absl::Span<const nn::Tensor> ranges) override {
    rank_->Register(ranges);
  }
  std::vector<Waiting> Waits() const override { return rank_->Waits(); }
  void Abort(absl::Status status) override { abort_all_(status); }

 private:
  const std::shared_ptr<NcclRank> rank_;
  const NcclRank::AbortAll abort_all_;
};

// Reads an id that another process has published.
absl::StatusOr<ncclUniqueId> ReadId(const std::string& name,
                                    const std::string& text) {
  ncclUniqueId id;
  if (text.size() != sizeof(id.internal)) {
    return absl::InvalidArgumentError(
        absl::StrCat("group \"", name, "\": an id of NCCL's has ",
                     sizeof(id.internal), " bytes, and ", text.size(),
                     " came; give all processes one version of NCCL"));
  }
  std::memcpy(id.internal, text.data(), text.size());
  return id;
}

NcclRank::FindId Found(const ncclUniqueId& id) {
  return [id] { return std::optional<ncclUniqueId>(id); };
}

// Returns what finds the id in the store without waiting.
NcclRank::FindId FoundLater(const NcclGroupOptions& options,
                            const std::string& key) {
  return [store = options.later_id, name = options.name,
          key]() -> absl::StatusOr<std::optional<ncclUniqueId>> {
    const absl::StatusOr<std::string> text =
        store->Get(key, absl::ZeroDuration());
    if (absl::IsDeadlineExceeded(text.status())) return std::nullopt;
    TROUPE_RETURN_IF_ERROR(text.status());
    TROUPE_ASSIGN_OR_RETURN(const ncclUniqueId id, ReadId(name, *text));
    return std::optional<ncclUniqueId>(id);
  };
}

// The process with index 0 makes the id and publishes it in `store`.
absl::StatusOr<NcclRank::FindId> ExchangeId(const NcclGroupOptions& options,
                                            Store& store) {
  const std::string key =
      absl::StrCat("nccl/", options.generation, "/", options.name, "/",
                   absl::StrJoin(options.ranks, ","));
  if (std::find(options.local.begin(), options.local.end(), 0) !=
      options.local.end()) {
    ncclUniqueId id;
    const ncclResult_t made = ncclGetUniqueId(&id);
    if (made != ncclSuccess) {
      return internal::NcclStatus(
          made, nullptr,
          absl::StrCat("group \"", options.name, "\": ncclGetUniqueId"));
    }
    TROUPE_RETURN_IF_ERROR(
        store.Set(key, std::string(id.internal, sizeof(id.internal))));
    return Found(id);
  }
  if (options.later_id != nullptr) return FoundLater(options, key);
  const absl::StatusOr<std::string> text = store.Get(key, options.timeout);
  if (absl::IsDeadlineExceeded(text.status())) {
    return internal::IdIsLate(options);
  }
  TROUPE_RETURN_IF_ERROR(text.status());
  TROUPE_ASSIGN_OR_RETURN(const ncclUniqueId id, ReadId(options.name, *text));
  return Found(id);
}

}  // namespace

absl::StatusOr<Group> OpenNcclGroup(const NcclGroupOptions& options,
                                    Store& store) {
  TROUPE_ASSIGN_OR_RETURN(const NcclRank::FindId find_id,
                          ExchangeId(options, store));
  const int size = static_cast<int>(options.ranks.size());
  const auto local =
      std::make_shared<LocalRanks>(size, options.local, options.in_flight_max);
  // Weak, since each rank holds this list.
  const auto all = std::make_shared<std::vector<std::weak_ptr<NcclRank>>>();
  const NcclRank::AbortAll abort_all = [all](const absl::Status& status) {
    for (const std::weak_ptr<NcclRank>& weak : *all) {
      if (const auto rank = weak.lock()) rank->Abort(status);
    }
  };
  Group group(size);
  for (int place : options.local) {
    const auto rank =
        std::make_shared<NcclRank>(options, place, find_id, local, abort_all);
    all->push_back(rank);
    group[place] = std::make_unique<NcclCommunicator>(rank, abort_all);
  }
  return group;
}

}  // namespace troupe::comm
