// The extents of a tensor, at most kMaxRank of them, held inline.
//
//   Shape images = {32, 28, 28, 1};          // N, H, W, C
//   images.numel();                          // 25088
//   images[3];                               // 1
//   images.ToString();                       // "[32, 28, 28, 1]"
//
// A value type of fixed size, cheap to copy. A scalar has rank 0 and numel 1.

#ifndef NN_TENSOR_SHAPE_H_
#define NN_TENSOR_SHAPE_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/types/span.h"

namespace troupe::nn {

class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  // Limit on the elements, so that their bytes can be counted in every dtype.
  static constexpr std::int64_t kMaxNumel = (std::int64_t{1} << 60) - 1;

  // Whether `dims` are extents of a shape: at most kMaxRank of them, none
  // negative, and at most kMaxNumel elements (zero extents count as 1, so that
  // no partial product is larger). Call it before making a shape from a user's
  // or a file's numbers.
  static bool Fits(absl::Span<const std::int64_t> dims);

  // CHECK-fails unless Fits(dims).
  Shape(std::initializer_list<std::int64_t> dims);
  explicit Shape(absl::Span<const std::int64_t> dims);

  int rank() const { return rank_; }
  // `axis` counts from 0, or from the end when negative.
  std::int64_t operator[](int axis) const {
    return dims_[axis < 0 ? axis + rank_ : axis];
  }
  // CHECK-fails unless the new extents fit.
  void set(int axis, std::int64_t extent);
  std::int64_t numel() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= dims_[i];
    return n;
  }
  absl::Span<const std::int64_t> dims() const {
    return {dims_.data(), static_cast<std::size_t>(rank_)};
  }

  std::string ToString() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    return a.rank_ == b.rank_ && a.dims() == b.dims();
  }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace troupe::nn

#endif  // NN_TENSOR_SHAPE_H_
