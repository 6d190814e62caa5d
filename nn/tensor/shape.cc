#include "nn/tensor/shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace troupe::nn {

Shape::Shape(std::initializer_list<std::int64_t> dims)
    : Shape(absl::Span<const std::int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(absl::Span<const std::int64_t> dims) {
  TROUPE_CHECK(dims.size() <= kMaxRank, "a shape has at most 6 extents");
  for (std::int64_t extent : dims) {
    TROUPE_CHECK(extent >= 0, "an extent is not negative");
    dims_[rank_++] = extent;
  }
  TROUPE_CHECK(Fits(dims), "a shape has less than 2^60 elements");
}

bool Shape::Fits(absl::Span<const std::int64_t> dims) {
  std::int64_t numel = 1;
  for (std::int64_t extent : dims) {
    if (extent < 0) return false;
    const std::int64_t factor = extent == 0 ? 1 : extent;
    if (__builtin_mul_overflow(numel, factor, &numel)) return false;
    if (numel > kMaxNumel) return false;
  }
  return dims.size() <= kMaxRank;
}

void Shape::set(int axis, std::int64_t extent) {
  dims_[axis < 0 ? axis + rank_ : axis] = extent;
  TROUPE_CHECK(Fits(dims()), "no negative extent, less than 2^60 elements");
}

std::string Shape::ToString() const {
  return absl::StrCat("[", absl::StrJoin(dims(), ", "), "]");
}

}  // namespace troupe::nn
