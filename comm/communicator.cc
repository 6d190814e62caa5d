#include "comm/communicator.h"

#include <sched.h>

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "comm/reduction_tree.h"

namespace troupe::comm {
namespace {

// How many idle looks at Progress() go by between two of the clock.
constexpr int kLooksPerClock = 64;

bool HasMemoryHere(const nn::Tensor& range) {
  return range.defined() && (!range.is_meta() || range.numel() == 0) &&
         range.device().type != nn::DeviceType::kCuda;
}

absl::Status CheckReplicas(const Collective& collective) {
  if (collective.update == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(collective.ToString(), ": there is no update"));
  }
  for (const nn::Tensor& replica : collective.update->replicas()) {
    if (!HasMemoryHere(replica)) {
      return absl::InvalidArgumentError(
          absl::StrCat(collective.ToString(), ": a replica has no memory"));
    }
    if (replica.numel() != collective.range.numel()) {
      return absl::InvalidArgumentError(
          absl::StrCat(collective.ToString(), ": a replica has ",
                       replica.numel(), " elements"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string Collective::ToString() const {
  const std::string what =
      range.defined()
          ? absl::StrCat(nn::DTypeName(range.dtype()), " x ", range.numel())
          : "nothing";
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return absl::StrCat("all_reduce(", ReduceOpName(op), ", ", what, ")");
    case CollectiveKind::kReduceUpdate:
      return absl::StrCat("reduce_update(", ReduceOpName(op), ", ", what, ")");
    case CollectiveKind::kBroadcast:
      return absl::StrCat("broadcast(root ", root, ", ", what, ")");
    case CollectiveKind::kBarrier:
      break;
  }
  return "barrier()";
}

Collective AllReduce(ReduceOp op, nn::Tensor range) {
  Collective collective;
  collective.kind = CollectiveKind::kAllReduce;
  collective.op = op;
  collective.range = std::move(range);
  return collective;
}

Collective ReduceUpdate(ReduceOp op, nn::Tensor range,
                        std::shared_ptr<ReplicaUpdate> update) {
  Collective collective = AllReduce(op, std::move(range));
  collective.kind = CollectiveKind::kReduceUpdate;
  collective.update = std::move(update);
  return collective;
}

Collective Broadcast(int root, nn::Tensor range) {
  Collective collective;
  collective.kind = CollectiveKind::kBroadcast;
  collective.root = root;
  collective.range = std::move(range);
  return collective;
}

Collective Barrier() { return Collective(); }

absl::Status CheckCollective(const Collective& collective, int size) {
  if (collective.kind == CollectiveKind::kBarrier) return absl::OkStatus();
  const nn::Tensor& range = collective.range;
  if (!HasMemoryHere(range)) {
    return absl::InvalidArgumentError(
        absl::StrCat(collective.ToString(), ": the range has no memory here"));
  }
  if (collective.kind == CollectiveKind::kReduceUpdate) {
    TROUPE_RETURN_IF_ERROR(CheckReplicas(collective));
  }
  if (collective.kind == CollectiveKind::kBroadcast) {
    if (collective.root >= 0 && collective.root < size) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        collective.ToString(), ": the group has ranks 0 to ", size - 1));
  }
  return CheckReduction(collective.op, range.dtype());
}

absl::Status Communicator::RunInline(const Collective& collective,
                                     absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  absl::StatusOr<Event> event = Start(collective, Event());
  if (!event.ok()) return event.status();
  for (std::int64_t looks = 0; !event->ready(); ++looks) {
    if (Progress()) continue;
    sched_yield();
    if (looks % kLooksPerClock == 0 && absl::Now() > deadline) {
      Abort(absl::DeadlineExceededError(absl::StrCat(
          "rank ", rank(), " waited ", absl::FormatDuration(timeout), " for ",
          collective.ToString())));
    }
  }
  return event->status();
}

}  // namespace troupe::comm
