#include "pipeline/mesh.h"

#include "absl/strings/str_cat.h"

namespace troupe::pipeline {

std::vector<int> Mesh::DpGroup(int rank) const {
  std::vector<int> group(dp_);
  const int stage = CoordsOf(rank).pp;
  for (int dp = 0; dp < dp_; ++dp) group[dp] = RankOf({dp, stage});
  return group;
}

std::string Mesh::ToString() const {
  return absl::StrCat("dp=", dp_, " pp=", pp_);
}

}  // namespace troupe::pipeline
