#include "actors/engine/actions/tied_sums.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "pipeline/ties.h"

namespace troupe::actors {

TiedSums::TiedSums(const pipeline::Plan& plan, int rank) {
  const int pp = plan.mesh.CoordOf(rank, pipeline::kPpAxis);
  const std::vector<pipeline::Tie> ties = pipeline::TiesOf(plan.stages);
  for (std::size_t i = 0; i < ties.size(); ++i) {
    Sum sum;
    sum.tie = static_cast<int>(i);
    for (const pipeline::TieMember& member : ties[i].members) {
      const pipeline::StagePlace& place = plan.stages[member.stage].place;
      if (place.pp == pp) sum.copies.push_back({place.chunk, member.bucket});
    }
    sum.has_peers = sum.copies.size() < ties[i].members.size();
    if (!sum.copies.empty()) sums_.push_back(std::move(sum));
  }
}

TiedSums::Sum& TiedSums::Of(const pipeline::Action& action) {
  for (Sum& sum : sums_) {
    for (const Copy& copy : sum.copies) {
      if (copy.chunk == action.chunk && copy.bucket == action.index) return sum;
    }
  }
  TROUPE_CHECK(false, "a TR is of a bucket that stages share");
  return sums_[0];
}

TiedSums::Sum* TiedSums::Begin(const pipeline::Action& action, int id) {
  Sum& sum = Of(action);
  sum.begun.push_back(id);
  return sum.begun.size() == sum.copies.size() ? &sum : nullptr;
}

}  // namespace troupe::actors
