#include "comm/spanning/agreement.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "comm/collective_kinds.h"
#include "comm/signature.h"

namespace troupe::comm::internal {
namespace {

// PackReplicas() has 8 bits for the count, then 4 for each dtype.
constexpr int kReplicasMax = 14;

// Returns "f32 and f64 replicas".
std::string DescribeReplicas(std::uint64_t packed) {
  const int count = static_cast<int>(packed & 0xff);
  if (count == 0) return "no replicas";
  std::vector<std::string> names;
  for (int i = 0; i < std::min(count, kReplicasMax); ++i) {
    const auto dtype = static_cast<nn::DType>(packed >> (8 + 4 * i) & 0xf);
    names.emplace_back(dtype > nn::DType::kU8 ? "?" : nn::DTypeName(dtype));
  }
  if (count > kReplicasMax) names.push_back(absl::StrCat(count - kReplicasMax));
  return absl::StrCat(absl::StrJoin(names, " and "), " replicas");
}

bool AllAlike(const Operation& op) {
  const LocalCalls& calls = op.calls;
  bool any = calls.first_place() >= 0;
  const LocalCalls::Call& first = calls[std::max(calls.first_place(), 0)];
  std::uint64_t signature = any ? first.signature : 0;
  std::uint64_t replicas = any ? PackReplicas(first.collective) : 0;
  const auto is_like = [&](std::uint64_t other, std::uint64_t others) {
    if (!std::exchange(any, true)) {
      signature = other;
      replicas = others;
    }
    return signature == other && replicas == others;
  };
  for (int place = 0; place < calls.size(); ++place) {
    const LocalCalls::Call& here = calls[place];
    if (here.joined && !is_like(here.signature, PackReplicas(here.collective)))
      return false;
  }
  for (const Note& note : op.notes.all()) {
    if (note.here && !is_like(note.signature, note.replicas)) return false;
  }
  return true;
}

struct Side {
  int rank;
  std::uint64_t signature, replicas;
};

// Returns what each process has started, by rank.
std::vector<Side> SidesOf(const GroupContext& context, const Operation& op) {
  std::vector<Side> sides;
  for (int rank : context.ranks_here()) {
    const LocalCalls::Call& here = op.calls[context.layout().place_of(rank)];
    if (here.joined) {
      sides.push_back({rank, here.signature, PackReplicas(here.collective)});
    }
  }
  for (const Note& note : op.notes.all()) {
    if (note.here) sides.push_back({note.rank, note.signature, note.replicas});
  }
  std::sort(sides.begin(), sides.end(),
            [](const Side& a, const Side& b) { return a.rank < b.rank; });
  return sides;
}

}  // namespace

absl::Status CheckAgreement(const GroupContext& context, const Operation& op) {
  if (AllAlike(op)) return absl::OkStatus();
  const std::vector<Side> sides = SidesOf(context, op);
  const auto named = [&](int rank) {
    return absl::StrCat("rank ", context.options().ranks[rank],
                        " of the job in ",
                        context.NameOf(context.layout().member_of(rank)));
  };
  for (std::size_t i = 1; i < sides.size(); ++i) {
    const Side& a = sides[0];
    const Side& b = sides[i];
    if (a.signature == b.signature && a.replicas == b.replicas) continue;
    const bool kinds = a.signature != b.signature;
    const std::string what_a =
        kinds ? Unpack(a.signature).ToString() : DescribeReplicas(a.replicas);
    const std::string what_b =
        kinds ? Unpack(b.signature).ToString() : DescribeReplicas(b.replicas);
    const char* const verb = kinds ? " started " : " updates ";
    return absl::FailedPreconditionError(absl::StrCat(
        "collective ", op.seq, " of the group differs: rank ", a.rank, verb,
        what_a, ", rank ", b.rank, verb, what_b, " (group ", context.name(),
        "; ", named(a.rank), ", ", named(b.rank), ")"));
  }
  return absl::OkStatus();
}

std::uint64_t PackReplicas(const Collective& collective) {
  if (!RuleOf(collective.kind).updates) return 0;
  const absl::Span<const nn::Tensor> replicas = collective.update->replicas();
  std::uint64_t packed = std::min<std::size_t>(replicas.size(), 255);
  for (std::size_t i = 0; i < replicas.size() && i < kReplicasMax; ++i) {
    packed |= static_cast<std::uint64_t>(replicas[i].dtype()) << (8 + 4 * i);
  }
  return packed;
}

}  // namespace troupe::comm::internal
