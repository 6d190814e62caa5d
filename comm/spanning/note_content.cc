#include "comm/spanning/note_content.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/flow.h"
#include "comm/signature.h"
#include "comm/spanning/arithmetic.h"
#include "comm/spanning/frames/wire.h"

namespace troupe::comm::internal {
namespace {

void Append(const void* data, std::size_t bytes, std::string* payload) {
  payload->append(static_cast<const char*>(data), bytes);
}

// Appends the counts that the ranks here give for those of `member`: all that
// are sent, then all that are expected.
void AppendCounts(const GroupContext& context, const Operation& op, int member,
                  std::string* payload) {
  const GroupLayout& layout = context.layout();
  for (const bool sent : {true, false}) {
    for (int here : context.ranks_here()) {
      const Collective& given = op.calls[layout.place_of(here)].collective;
      for (int there : layout.ranks_of(member)) {
        Append(sent ? &given.send_counts[there] : &given.recv_counts[there],
               sizeof(std::int64_t), payload);
      }
    }
  }
}

void AppendParts(const GroupContext& context, const Operation& op, int member,
                 std::string* payload) {
  const TransferPlan& plan = *op.plan;
  plan.ForEachPart(context.self(), member, [&](int i, int node) {
    if (node < 0) {
      return Append(op.Input(i, plan.block_of(i).block.from), plan.BytesOf(i),
                    payload);
    }
    const GroupLayout::Node& whole = context.layout().nodes()[node];
    if (whole.ranks() == 1) {
      return Append(op.Input(i, whole.begin), plan.BytesOf(i), payload);
    }
    const std::size_t at = payload->size();
    payload->resize(at + plan.BytesOf(i));
    SumNode(context, op, i, node, &(*payload)[at]);
  });
}

// Compares the counts of the member's ranks with those of ours, pair by pair:
// both processes compare the same pairs, and report the same one. Removes the
// counts from the payload.
absl::Status ReadCounts(const GroupContext& context, const Operation& op,
                        int member, absl::string_view* payload) {
  if (!op.first().by_counts()) return absl::OkStatus();
  struct Pair {
    std::int64_t sent = 0, expected = 0;
  };
  std::map<std::pair<int, int>, Pair> pairs;  // by sender, receiver
  const std::vector<int>& theirs = context.layout().ranks_of(member);
  const std::vector<int>& mine = context.ranks_here();
  if (payload->size() < 2 * theirs.size() * mine.size() * sizeof(Pair::sent)) {
    return context.Broke(member, "a note that is too short for its counts");
  }
  const auto next = [&] {
    std::int64_t count;
    std::memcpy(&count, payload->data(), sizeof(count));
    payload->remove_prefix(sizeof(count));
    return count;
  };
  const auto given = [&](int rank) -> const Collective& {
    return op.calls[context.layout().place_of(rank)].collective;
  };
  for (int from : theirs) {
    for (int to : mine) {
      const std::int64_t sent = next();
      pairs[{from, to}] = {sent, given(to).recv_counts[from]};
    }
  }
  for (int to : theirs) {
    for (int from : mine) {
      const std::int64_t expected = next();
      pairs[{from, to}] = {given(from).send_counts[to], expected};
    }
  }
  for (const auto& [ranks, pair] : pairs) {
    if (pair.sent == pair.expected) continue;
    return UnequalCounts(ranks.first, pair.sent, ranks.second, pair.expected);
  }
  return absl::OkStatus();
}

absl::Status CompareSettings(const GroupContext& context, int member,
                             std::uint64_t theirs) {
  const std::uint64_t mine = PackSettings(context.settings(), member);
  if (theirs == mine) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      context.NameOf(member), " has ", DescribeSettings(theirs), ", but ",
      context.NameOf(context.self()), " has ", DescribeSettings(mine),
      "; set the same FabricOptions in all processes"));
}

}  // namespace

std::string NoteContent(const GroupContext& context, const Operation& op,
                        int member, absl::string_view references) {
  std::string payload;
  if (op.first().by_counts()) AppendCounts(context, op, member, &payload);
  if (op.plan->eager(context.self(), member)) {
    AppendParts(context, op, member, &payload);
  }
  payload.append(references.data(), references.size());
  return payload;
}

absl::string_view OnlyPart(const GroupContext& context, const Operation& op,
                           int member) {
  const TransferPlan& plan = *op.plan;
  const std::vector<int>& here = context.ranks_here();
  if (op.first().by_counts() || plan.pieces() != 1 || here.size() != 1 ||
      !plan.SendsParts(0, context.self(), member) ||
      !plan.eager(context.self(), member)) {
    return "";
  }
  return {op.Input(0, here.front()), plan.BytesOf(0)};
}

absl::Status ReadNote(const GroupContext& context, Operation* op, int member) {
  const Note& note = op->notes[member];
  const TransferPlan& plan = *op->plan;
  absl::string_view payload = note.payload;
  TROUPE_RETURN_IF_ERROR(CompareSettings(context, member, note.settings));
  TROUPE_RETURN_IF_ERROR(ReadCounts(context, *op, member, &payload));
  const std::size_t parts = plan.eager(member, context.self())
                                ? plan.PartBytes(member, context.self())
                                : 0;
  const std::size_t references =
      note.by_reference
          ? 2 * context.layout().ranks_of(member).size() * sizeof(Reference)
          : 0;
  if (payload.size() != parts + references) {
    return context.Broke(member,
                         absl::StrCat("a note with ", payload.size(),
                                      " bytes of parts and references, not ",
                                      parts + references));
  }
  if (parts == 0) return absl::OkStatus();
  plan.ForEachPart(member, context.self(), [&](int i, int node) {
    static_assert(PieceProgress::kValue == -1, "as ForEachPart() says");
    op->pieces[i].AddFromNote(node, member, payload.data());
    payload.remove_prefix(plan.BytesOf(i));
  });
  return absl::OkStatus();
}

}  // namespace troupe::comm::internal
