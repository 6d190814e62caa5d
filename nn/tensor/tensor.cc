#include "nn/tensor/tensor.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/utility/utility.h"
#include "base/field_error.h"
#include "base/usage_error.h"

namespace troupe::nn {
namespace {

// Returns the owner of headers over borrowed memory.
StorageOwner* Borrower() {
  class Owner final : public StorageOwner {
    void Recycle(Storage* storage) override { delete storage; }
  };
  static Owner* const owner = new Owner;
  return owner;
}

}  // namespace

absl::StatusOr<Tensor> Tensor::Create(const Shape& shape, DType dtype,
                                      Allocator& allocator) {
  absl::StatusOr<StoragePtr> storage =
      allocator.Allocate(shape.numel() * SizeOf(dtype));
  if (ABSL_PREDICT_FALSE(!storage.ok())) {
    return base::WithMessage(
        storage.status(), absl::StrCat(DTypeName(dtype), shape.ToString(), ": ",
                                       storage.status().message()));
  }
  // Constructed in place in the result: every op makes one.
  absl::StatusOr<Tensor> made(absl::in_place);
  made->storage_ = *std::move(storage);
  made->shape_ = shape;
  made->dtype_ = dtype;
  made->device_ = allocator.device();
  made->defined_ = true;
  return made;
}

absl::StatusOr<Tensor> Tensor::Temporary(const Shape& shape, DType dtype,
                                         Allocator& allocator) {
  // Limit on the elements of a chunk (comm/local/cut.h).
  constexpr std::int64_t kRoom = 16384;
  if (shape.numel() >= kRoom) return Create(shape, dtype, allocator);
  absl::StatusOr<Tensor> room = Create({kRoom}, dtype, allocator);
  if (!room.ok()) return room;
  return room->FlatView(0, shape);
}

Tensor Tensor::Empty(const Shape& shape, DType dtype, Allocator& allocator) {
  absl::StatusOr<Tensor> t = Create(shape, dtype, allocator);
  if (!t.ok()) {
    CheckFailed(__FILE__, __LINE__, "t.ok()",
                std::string(t.status().message()).c_str());
  }
  return *std::move(t);
}

Tensor Tensor::Zeros(const Shape& shape, DType dtype, Allocator& allocator) {
  Tensor t = Empty(shape, dtype, allocator);
  std::memset(t.raw(), 0, t.bytes());
  return t;
}

Tensor Tensor::Borrow(void* data, const Shape& shape, DType dtype,
                      Device device) {
  Tensor t = Meta(shape, dtype, device);
  Storage* const header = new Storage(Borrower(), data, t.bytes(),
                                      /*host_accessible=*/true);
  t.storage_ = StoragePtr(header->HandOut(t.bytes()));
  return t;
}

bool Tensor::owns_alone() const {
  return storage_.unique() && storage_->owner() != Borrower();
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
  if (shape.numel() != numel()) {
    throw base::UsageError(absl::StrCat(ToString(), " has no view ",
                                        shape.ToString(),
                                        ": that has another number of "
                                        "elements"));
  }
  Tensor t = *this;
  t.shape_ = shape;
  return t;
}

Tensor Tensor::Slice(std::int64_t begin, std::int64_t end) const {
  if (shape_.rank() == 0 || begin < 0 || begin > end || end > shape_[0]) {
    throw base::UsageError(absl::StrCat(ToString(), " has no rows [", begin,
                                        ", ", end, ") of the first axis"));
  }
  Tensor t = *this;
  const std::int64_t row = shape_[0] == 0 ? 0 : numel() / shape_[0];
  t.shape_.set(0, end - begin);
  t.offset_bytes_ += begin * row * SizeOf(dtype_);
  return t;
}

Tensor Tensor::FlatView(std::int64_t begin, const Shape& shape) const {
  if (begin < 0 || begin + shape.numel() > numel()) {
    throw base::UsageError(absl::StrCat(ToString(), " has no ",
                                        shape.ToString(), " from element ",
                                        begin, " on"));
  }
  Tensor t = *this;
  t.shape_ = shape;
  t.offset_bytes_ += begin * SizeOf(dtype_);
  return t;
}

void Tensor::ThrowNoHostMemory() const {
  throw base::UsageError(absl::StrCat(
      ToString(), !defined_ ? " has no memory"
                  : is_meta()
                      ? " has no memory: in a shape-only forward, ask "
                        "Context::computes() before touching elements"
                      : " is not memory of the host; copy it there first "
                        "(nn/kernels/device_queues.h)"));
}

void Tensor::ThrowOtherType(DType asked) const {
  throw base::UsageError(
      absl::StrCat(ToString(), " has no elements of ", DTypeName(asked)));
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
