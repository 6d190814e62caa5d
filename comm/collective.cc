// What a Collective is, apart from how it is carried out: its constructors, its
// text, and what can be said of it before anybody else has started.

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "comm/communicator.h"
#include "comm/reduction_tree.h"

namespace troupe::comm {
namespace {

bool HasMemoryHere(const nn::Tensor& range) {
  return range.defined() && (!range.is_meta() || range.numel() == 0) &&
         range.device().type != nn::DeviceType::kCuda;
}

template <typename... Why>
absl::Status Invalid(const Collective& collective, const Why&... why) {
  return absl::InvalidArgumentError(
      absl::StrCat(collective.ToString(), ": ", why...));
}

bool HasRoot(CollectiveKind kind) {
  return kind == CollectiveKind::kBroadcast ||
         kind == CollectiveKind::kReduce || kind == CollectiveKind::kGather ||
         kind == CollectiveKind::kScatter;
}

bool HasOp(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce ||
         kind == CollectiveKind::kReduceUpdate ||
         kind == CollectiveKind::kReduce ||
         kind == CollectiveKind::kReduceScatter;
}

// How long a rank's input and range are, in multiples of counted(). 0: it is
// not looked at.
struct Lengths {
  int input = 0;
  int range = 0;
};

Lengths LengthsOf(const Collective& collective, bool is_root, int size) {
  const int given = collective.input.defined() ? 1 : 0;
  switch (collective.kind) {
    case CollectiveKind::kAllReduce:
      return {given, 1};
    case CollectiveKind::kReduce:
      return {given, is_root || given == 0 ? 1 : 0};
    case CollectiveKind::kBroadcast:
      return {is_root ? given : 0, 1};
    case CollectiveKind::kReduceUpdate:
      return {0, 1};
    case CollectiveKind::kAllGather:
      return {1, size};
    case CollectiveKind::kGather:
      return {1, is_root ? size : 0};
    case CollectiveKind::kScatter:
      return {is_root ? size : 0, 1};
    case CollectiveKind::kReduceScatter:
      return {size, 1};
    case CollectiveKind::kAllToAll:
      return {1, 1};
    case CollectiveKind::kBarrier:
      break;
  }
  return {};
}

absl::Status CheckMemory(const Collective& collective, absl::string_view name,
                         const nn::Tensor& side) {
  if (!HasMemoryHere(side)) {
    return Invalid(collective, "the ", name, " has no memory here");
  }
  const nn::DType dtype = collective.counted().dtype();
  if (side.dtype() == dtype) return absl::OkStatus();
  return Invalid(collective, "the ", name, " is of ",
                 nn::DTypeName(side.dtype()), ", not of ",
                 nn::DTypeName(dtype));
}

absl::Status CheckLength(const Collective& collective, absl::string_view name,
                         const nn::Tensor& side, int times) {
  if (times == 0) return absl::OkStatus();
  TROUPE_RETURN_IF_ERROR(CheckMemory(collective, name, side));
  const std::int64_t count = collective.counted().numel();
  // Divided, since a product might wrap around.
  if (side.numel() % times == 0 && side.numel() / times == count) {
    return absl::OkStatus();
  }
  return Invalid(collective, "the ", name, " has ", side.numel(),
                 " elements, not ", times, " x ", count);
}

// Where `part` lies in `whole`, or in its way.
absl::Status CheckApart(const Collective& collective, int rank,
                        const Lengths& lengths) {
  const nn::Tensor& input = collective.input;
  const nn::Tensor& range = collective.range;
  if (lengths.input == 0 || lengths.range == 0 || input.bytes() == 0 ||
      range.bytes() == 0) {
    return absl::OkStatus();
  }
  const auto address = [](const nn::Tensor& tensor) {
    return reinterpret_cast<std::uintptr_t>(tensor.device_data());
  };
  const std::uintptr_t from = address(input);
  const std::uintptr_t to = address(range);
  if (from + input.bytes() <= to || to + range.bytes() <= from) {
    return absl::OkStatus();
  }
  const std::size_t own = rank * collective.counted().bytes();
  const bool in_place = collective.kind != CollectiveKind::kAllToAll &&
                        (lengths.range > 1   ? from == to + own
                         : lengths.input > 1 ? to == from + own
                                             : from == to);
  if (in_place) return absl::OkStatus();
  return Invalid(collective, "input and range of rank ", rank,
                 " overlap, and not as rank ", rank, "'s own block");
}

absl::Status CheckCounts(const Collective& collective, absl::string_view name,
                         const std::vector<std::int64_t>& counts,
                         const nn::Tensor& side, int size) {
  if (static_cast<int>(counts.size()) != size) {
    return Invalid(collective, name, "_counts has ", counts.size(),
                   " entries for ", size, " ranks");
  }
  std::int64_t rest = side.numel();
  for (std::int64_t count : counts) {
    if (count < 0) return Invalid(collective, "a negative count: ", count);
    if (count > rest) rest = -1;
    if (rest < 0) break;
    rest -= count;
  }
  if (rest == 0) return absl::OkStatus();
  return Invalid(collective, "the ", name == "send" ? "input" : "range",
                 " has ", side.numel(), " elements, and ", name,
                 "_counts add up to ", rest < 0 ? "more" : "fewer");
}

absl::Status CheckAllToAll(const Collective& collective, int rank, int size) {
  if (collective.by_counts()) {
    TROUPE_RETURN_IF_ERROR(CheckMemory(collective, "input", collective.input));
    TROUPE_RETURN_IF_ERROR(CheckMemory(collective, "range", collective.range));
    TROUPE_RETURN_IF_ERROR(CheckCounts(
        collective, "send", collective.send_counts, collective.input, size));
    TROUPE_RETURN_IF_ERROR(CheckCounts(
        collective, "recv", collective.recv_counts, collective.range, size));
  } else if (collective.input.numel() % size != 0) {
    return Invalid(collective, "no equal parts for ", size, " ranks");
  }
  return CheckApart(collective, rank, {1, 1});
}

absl::Status CheckReplicas(const Collective& collective) {
  if (collective.update == nullptr) {
    return Invalid(collective, "there is no update");
  }
  for (const nn::Tensor& replica : collective.update->replicas()) {
    if (!HasMemoryHere(replica)) {
      return Invalid(collective, "a replica has no memory");
    }
    if (replica.numel() != collective.range.numel()) {
      return Invalid(collective, "a replica has ", replica.numel(),
                     " elements");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMessage(absl::string_view what, int peer,
                          const nn::Tensor& range, int size) {
  const char* const wrong = !HasMemoryHere(range)
                                ? "its range has no memory here"
                            : peer < 0 || peer >= size ? "no such rank"
                                                       : nullptr;
  if (wrong == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " rank ", peer, " of ", size, ": ", wrong));
}

Collective OfKind(CollectiveKind kind, nn::Tensor input, nn::Tensor range) {
  Collective collective;
  collective.kind = kind;
  collective.input = std::move(input);
  collective.range = std::move(range);
  return collective;
}

}  // namespace

absl::string_view CollectiveKindName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kReduceUpdate:
      return "reduce_update";
    case CollectiveKind::kReduce:
      return "reduce";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kGather:
      return "gather";
    case CollectiveKind::kScatter:
      return "scatter";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllToAll:
      return "all_to_all";
    case CollectiveKind::kBarrier:
      break;
  }
  return "barrier";
}

const nn::Tensor& Collective::counted() const {
  switch (kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kGather:
    case CollectiveKind::kAllToAll:
      return input;
    case CollectiveKind::kReduce:
      return input.defined() ? input : range;
    default:
      return range;
  }
}

std::string Collective::ToString() const {
  std::string text(CollectiveKindName(kind));
  if (kind == CollectiveKind::kBarrier) return text + "()";
  absl::StrAppend(&text, "(");
  if (HasOp(kind)) absl::StrAppend(&text, ReduceOpName(op), ", ");
  if (HasRoot(kind)) absl::StrAppend(&text, "root ", root, ", ");
  if (!counted().defined()) return text + "nothing)";
  absl::StrAppend(&text, nn::DTypeName(counted().dtype()));
  if (by_counts()) return text + ", by counts)";
  return absl::StrCat(text, " x ", counted().numel(), ")");
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

Collective Reduce(ReduceOp op, int root, nn::Tensor input, nn::Tensor range) {
  Collective collective =
      OfKind(CollectiveKind::kReduce, std::move(input), std::move(range));
  collective.op = op;
  collective.root = root;
  return collective;
}

Collective AllGather(nn::Tensor input, nn::Tensor range) {
  return OfKind(CollectiveKind::kAllGather, std::move(input), std::move(range));
}

Collective Gather(int root, nn::Tensor input, nn::Tensor range) {
  Collective collective =
      OfKind(CollectiveKind::kGather, std::move(input), std::move(range));
  collective.root = root;
  return collective;
}

Collective Scatter(int root, nn::Tensor input, nn::Tensor range) {
  Collective collective =
      OfKind(CollectiveKind::kScatter, std::move(input), std::move(range));
  collective.root = root;
  return collective;
}

Collective ReduceScatter(ReduceOp op, nn::Tensor input, nn::Tensor range) {
  Collective collective = OfKind(CollectiveKind::kReduceScatter,
                                 std::move(input), std::move(range));
  collective.op = op;
  return collective;
}

Collective AllToAll(nn::Tensor input, nn::Tensor range) {
  return OfKind(CollectiveKind::kAllToAll, std::move(input), std::move(range));
}

Collective AllToAll(nn::Tensor input, std::vector<std::int64_t> send_counts,
                    nn::Tensor range, std::vector<std::int64_t> recv_counts) {
  Collective collective = AllToAll(std::move(input), std::move(range));
  collective.send_counts = std::move(send_counts);
  collective.recv_counts = std::move(recv_counts);
  return collective;
}

absl::Status CheckCollective(const Collective& collective, int rank, int size) {
  const CollectiveKind kind = collective.kind;
  if (kind == CollectiveKind::kBarrier) return absl::OkStatus();
  // The one that may take less than a microsecond in all.
  if (kind == CollectiveKind::kAllReduce && !collective.input.defined() &&
      HasMemoryHere(collective.range)) {
    return CheckReduction(collective.op, collective.range.dtype());
  }
  if (HasRoot(kind) && (collective.root < 0 || collective.root >= size)) {
    return Invalid(collective, "the group has ranks 0 to ", size - 1);
  }
  if (!collective.counted().defined()) {
    return Invalid(
        collective, "rank ", rank, " names no ",
        &collective.counted() == &collective.input ? "input" : "range");
  }
  if (HasOp(kind)) {
    TROUPE_RETURN_IF_ERROR(
        CheckReduction(collective.op, collective.counted().dtype()));
  }
  if (kind == CollectiveKind::kReduceUpdate) {
    TROUPE_RETURN_IF_ERROR(CheckMemory(collective, "range", collective.range));
    return CheckReplicas(collective);
  }
  if (collective.by_counts()) return CheckAllToAll(collective, rank, size);
  const Lengths lengths = LengthsOf(collective, rank == collective.root, size);
  TROUPE_RETURN_IF_ERROR(
      CheckLength(collective, "input", collective.input, lengths.input));
  TROUPE_RETURN_IF_ERROR(
      CheckLength(collective, "range", collective.range, lengths.range));
  if (kind == CollectiveKind::kAllToAll) {
    return CheckAllToAll(collective, rank, size);
  }
  return CheckApart(collective, rank, lengths);
}

absl::Status CheckSend(int to, const nn::Tensor& data, int size) {
  return CheckMessage("a send to", to, data, size);
}

absl::Status CheckRecv(int from, const nn::Tensor& into, int size) {
  return CheckMessage("a receive from", from == kAnySource ? 0 : from, into,
                      size);
}

}  // namespace troupe::comm
