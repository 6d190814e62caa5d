#include "nn/tensor/shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nn/tensor/check.h"

namespace troupe::nn {

Shape::Shape(std::initializer_list<std::int64_t> dims)
    : Shape(absl::Span<const std::int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(absl::Span<const std::int64_t> dims) {
  TROUPE_CHECK(dims.size() <= kMaxRank, "a shape has at most 6 extents");
  for (std::int64_t extent : dims) {
    TROUPE_CHECK(extent >= 0, "an extent is not negative");
    dims_[rank_++] = extent;
  }
}

std::string Shape::ToString() const {
  return absl::StrCat("[", absl::StrJoin(dims(), ", "), "]");
}

}  // namespace troupe::nn
