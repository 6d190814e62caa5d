#include "nn/tensor/tensor.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace troupe::nn {

Tensor Tensor::Empty(const Shape& shape, DType dtype,
                     CachingAllocator& allocator) {
  Tensor t = Meta(shape, dtype, allocator.device());
  t.storage_ = allocator.Allocate(shape.numel() * SizeOf(dtype));
  return t;
}

Tensor Tensor::Zeros(const Shape& shape, DType dtype,
                     CachingAllocator& allocator) {
  Tensor t = Empty(shape, dtype, allocator);
  std::memset(t.raw(), 0, t.bytes());
  return t;
}

Tensor Tensor::Meta(const Shape& shape, DType dtype, Device device) {
  Tensor t;
  t.shape_ = shape;
  t.dtype_ = dtype;
  t.device_ = device;
  t.defined_ = true;
  return t;
}

Tensor Tensor::View(const Shape& shape) const {
  TROUPE_CHECK(shape.numel() == numel(), "a view keeps the number of elements");
  Tensor t = *this;
  t.shape_ = shape;
  return t;
}

Tensor Tensor::Slice(std::int64_t begin, std::int64_t end) const {
  TROUPE_CHECK(
      shape_.rank() > 0 && 0 <= begin && begin <= end && end <= shape_[0],
      "a slice lies inside the first axis");
  Tensor t = *this;
  const std::int64_t row = shape_[0] == 0 ? 0 : numel() / shape_[0];
  t.shape_.set(0, end - begin);
  t.offset_bytes_ += begin * row * SizeOf(dtype_);
  return t;
}

Tensor Tensor::FlatView(std::int64_t begin, const Shape& shape) const {
  TROUPE_CHECK(0 <= begin && begin + shape.numel() <= numel(),
               "a flat view lies inside the tensor");
  Tensor t = *this;
  t.shape_ = shape;
  t.offset_bytes_ += begin * SizeOf(dtype_);
  return t;
}

std::string Tensor::ToString() const {
  if (!defined_) return "undefined";
  return absl::StrCat(DTypeName(dtype_), shape_.ToString(), " on ",
                      device_.ToString(), storage_ ? "" : " (meta)");
}

bool BitEqual(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

}  // namespace troupe::nn
