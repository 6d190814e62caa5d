// The text of a Collective, and the checks that one rank can make without its
// peers. Its constructors stand next to the rows of its kinds
// (collective_kinds.cc).

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "comm/collective_kinds.h"
#include "comm/communicator.h"
#include "comm/reduction/reduction_tree.h"

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

// Expected length of a rank's input and range, in multiples of counted(). 0:
// not checked.
struct Lengths {
  int input = 0;
  int range = 0;
};

Lengths LengthsOf(const Collective& collective, bool is_root, int size) {
  const CollectiveRule& rule = RuleOf(collective.kind);
  const auto takes_part = [&](Participants ranks) {
    return ranks == Participants::kAll ||
           (ranks == Participants::kRoot && is_root);
  };
  const auto times = [&](Extent extent) {
    const bool by_rank =
        extent == Extent::kBlockPerRank && !rule.counts_block_per_rank();
    return by_rank ? size : 1;
  };
  const bool gives = takes_part(rule.gives);
  const bool range_is_input =
      rule.input_may_be_range && !collective.input.defined();
  Lengths lengths;
  if (gives && !range_is_input) lengths.input = times(rule.input);
  if (takes_part(rule.gets)) {
    lengths.range = times(rule.range);
  } else if (gives && range_is_input) {
    lengths.range = times(rule.input);
  }
  return lengths;
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
  // Divides, since a product might wrap around; but not by 1, the common
  // case, which takes as long as all other checks.
  if (times == 1 ? side.numel() == count
                 : side.numel() % times == 0 && side.numel() / times == count) {
    return absl::OkStatus();
  }
  return Invalid(collective, "the ", name, " has ", side.numel(),
                 " elements, not ", times, " x ", count);
}

// Rejects an input and a range that overlap, unless one is this rank's own
// block of the other.
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
  // An exchange, whose sides have a block for each rank, has no such block.
  const bool in_place = !RuleOf(collective.kind).counts_block_per_rank() &&
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

absl::Status CheckByCounts(const Collective& collective, int rank, int size) {
  TROUPE_RETURN_IF_ERROR(CheckMemory(collective, "input", collective.input));
  TROUPE_RETURN_IF_ERROR(CheckMemory(collective, "range", collective.range));
  TROUPE_RETURN_IF_ERROR(CheckCounts(collective, "send", collective.send_counts,
                                     collective.input, size));
  TROUPE_RETURN_IF_ERROR(CheckCounts(collective, "recv", collective.recv_counts,
                                     collective.range, size));
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
                          const nn::Tensor& range, int size, bool hands_over) {
  const bool has_memory =
      hands_over ? range.defined() && !range.is_meta() : HasMemoryHere(range);
  const char* const why = !has_memory ? "its range must have memory here"
                          : peer < 0 || peer >= size
                              ? "no such rank; count them from 0"
                              : nullptr;
  if (why == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " rank ", peer, " of ", size, ": ", why));
}

}  // namespace

const nn::Tensor& Collective::counted() const {
  const CollectiveRule& rule = RuleOf(kind);
  if (rule.counts_range()) return range;
  return rule.input_may_be_range && !input.defined() ? range : input;
}

std::string Collective::ToString() const {
  const CollectiveRule& rule = RuleOf(kind);
  std::string text(rule.name);
  if (!rule.moves_data()) return text + "()";
  absl::StrAppend(&text, "(");
  if (rule.reduces) absl::StrAppend(&text, ReduceOpName(op), ", ");
  if (rule.has_root()) absl::StrAppend(&text, "root ", root, ", ");
  if (!counted().defined()) return text + "nothing)";
  absl::StrAppend(&text, nn::DTypeName(counted().dtype()));
  if (by_counts()) return text + ", by counts)";
  return absl::StrCat(text, " x ", counted().numel(), ")");
}

absl::Status CheckCollective(const Collective& collective, int rank, int size) {
  // The fast path: an in-place all-reduce may take less than a microsecond in
  // all.
  if (collective.kind == CollectiveKind::kAllReduce &&
      !collective.input.defined() && HasMemoryHere(collective.range)) {
    return CheckReduction(collective.op, collective.range.dtype());
  }
  const CollectiveRule& rule = RuleOf(collective.kind);
  if (!rule.moves_data()) return absl::OkStatus();
  if (rule.has_root() && (collective.root < 0 || collective.root >= size)) {
    return Invalid(collective, "the group has ranks 0 to ", size - 1);
  }
  if (!collective.counted().defined()) {
    return Invalid(
        collective, "rank ", rank, " names no ",
        &collective.counted() == &collective.input ? "input" : "range");
  }
  if (rule.reduces) {
    TROUPE_RETURN_IF_ERROR(
        CheckReduction(collective.op, collective.counted().dtype()));
  }
  if (rule.updates) {
    TROUPE_RETURN_IF_ERROR(CheckMemory(collective, "range", collective.range));
    return CheckReplicas(collective);
  }
  if (collective.by_counts()) return CheckByCounts(collective, rank, size);
  const Lengths lengths = LengthsOf(collective, rank == collective.root, size);
  TROUPE_RETURN_IF_ERROR(
      CheckLength(collective, "input", collective.input, lengths.input));
  TROUPE_RETURN_IF_ERROR(
      CheckLength(collective, "range", collective.range, lengths.range));
  if (rule.counts_block_per_rank() &&
      collective.counted().numel() % size != 0) {
    return Invalid(collective, "no equal parts for ", size, " ranks");
  }
  return CheckApart(collective, rank, lengths);
}

bool IsNoOp(const Collective& collective, int size) {
  if (size > 1) return false;
  const CollectiveRule& rule = RuleOf(collective.kind);
  const bool range_is_input =
      rule.input_may_be_range && !collective.input.defined();
  return !rule.updates && (range_is_input || !rule.moves_data());
}

absl::Status CheckSend(int to, const nn::Tensor& data, int size,
                       bool hands_over) {
  return CheckMessage("a send to", to, data, size, hands_over);
}

absl::Status CheckRecv(int from, const nn::Tensor& into, int size,
                       bool hands_over) {
  return CheckMessage("a receive from", from == kAnySource ? 0 : from, into,
                      size, hands_over);
}

}  // namespace troupe::comm
