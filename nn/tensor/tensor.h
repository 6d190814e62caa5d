// A contiguous, row-major array of one dtype on one device: a shape over a
// counted Storage. Copying a Tensor copies the handle, not the elements.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       Tensor x, Tensor::Create({2, 3}, DType::kF32, kernels.allocator()));
//   x.data<float>()[0] = 1.0f;                // needs host access
//   Tensor rows = x.Slice(0, 1);              // shares memory, [1, 3]
//   Tensor flat = x.View({6});                // shares memory
//   Tensor y = Tensor::Of<float>({2}, {1, 2}, allocator);
//
// A *meta* tensor has shape and dtype but no memory: the shape-only forward
// runs on them. Images have the logical shape (N, H, W, C) on every device.
//
// Errors: Create() fails if the device is out of memory (allocator.h); Empty(),
// Zeros() and Of(), which are for tests and small programs, end the process in
// that case. data() and raw() throw base::UsageError for another element type,
// for a tensor without memory, and if the host may not access the memory (that
// device's kernels use device_data()); views throw it for a range that is out
// of bounds.
//
// Threads: the same as for a pointer: one thread may write if no other reads.

#ifndef NN_TENSOR_TENSOR_H_
#define NN_TENSOR_TENSOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/base/optimization.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/check.h"
#include "nn/tensor/allocator.h"
#include "nn/tensor/caching_allocator.h"
#include "nn/tensor/device.h"
#include "nn/tensor/dtype.h"
#include "nn/tensor/shape.h"

namespace troupe::nn {

// Identifies a tensor's value on a tape (nn/autograd/tape.h); the tensor is a
// constant if `tape` is 0.
struct TapeRef {
  std::uint32_t tape = 0;
  std::int32_t value = -1;
};

class Tensor {
 public:
  Tensor() = default;

  // Allocates from `allocator`; the contents are unspecified.
  //   kResourceExhausted: has shape and dtype, and the bytes held and free.
  static absl::StatusOr<Tensor> Create(const Shape& shape, DType dtype,
                                       Allocator& allocator);
  // Like Create(), for a kernel's own use within one call. A bucket is updated
  // in chunks whose sizes depend on which rank was free first; these tensors
  // take blocks of one size, so that no chunk needs further memory later.
  static absl::StatusOr<Tensor> Temporary(const Shape& shape, DType dtype,
                                          Allocator& allocator);
  // Like Create(), for callers for which running out of memory is a bug.
  static Tensor Empty(const Shape& shape, DType dtype, Allocator& allocator);
  static Tensor Zeros(const Shape& shape, DType dtype, Allocator& allocator);
  // Wraps memory that the caller keeps alive, and that the host may access.
  static Tensor Borrow(void* data, const Shape& shape, DType dtype,
                       Device device);
  // Returns a tensor without memory.
  static Tensor Meta(const Shape& shape, DType dtype, Device device);
  // Copies `values`, whose count must be shape.numel().
  template <typename T>
  static Tensor Of(const Shape& shape, absl::Span<const T> values,
                   Allocator& allocator) {
    TROUPE_CHECK(static_cast<std::int64_t>(values.size()) == shape.numel(),
                 "as many values as the shape has elements");
    Tensor t = Empty(shape, DTypeOf<T>::value, allocator);
    std::copy(values.begin(), values.end(), t.data<T>());
    return t;
  }

  // False for a default-constructed handle; true for a meta tensor.
  bool defined() const { return defined_; }
  bool is_meta() const { return defined_ && !storage_; }

  const Shape& shape() const { return shape_; }
  std::int64_t dim(int axis) const { return shape_[axis]; }
  std::int64_t numel() const { return shape_.numel(); }
  std::size_t bytes() const { return numel() * SizeOf(dtype_); }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }

  // An address on the tensor's device, for kernels of that device.
  void* device_data() const {
    return static_cast<char*>(storage_->data()) + offset_bytes_;
  }
  // Whether this is the only reference to the memory (an op that keeps its
  // output for backward is another). False if it is borrowed or absent.
  bool owns_alone() const;
  // Whether data() and raw() may be used. False for a meta tensor.
  bool host_accessible() const {
    return storage_ && storage_->host_accessible();
  }
  void* raw() const {
    if (ABSL_PREDICT_FALSE(!host_accessible())) ThrowNoHostMemory();
    return device_data();
  }
  template <typename T>
  T* data() const {
    if (ABSL_PREDICT_FALSE(DTypeOf<T>::value != dtype_)) {
      ThrowOtherType(DTypeOf<T>::value);
    }
    return static_cast<T*>(raw());
  }
  template <typename T>
  absl::Span<T> span() const {
    return {data<T>(), static_cast<std::size_t>(numel())};
  }

  // Views keep their place on a tape, but have no gradient: an op refuses a
  // view whose shape differs from that of the tracked tensor.
  //
  // Returns the same elements under another shape of equal numel.
  Tensor View(const Shape& shape) const;
  // Returns rows [begin, end) of the first axis.
  Tensor Slice(std::int64_t begin, std::int64_t end) const;
  // Returns elements [begin, begin + shape.numel()) in flat order, as `shape`.
  Tensor FlatView(std::int64_t begin, const Shape& shape) const;

  // Returns a constant copy of the handle: gradients stop here.
  Tensor Detached() const {
    Tensor t = *this;
    t.tape_ref_ = TapeRef{};
    return t;
  }

  const TapeRef& tape_ref() const { return tape_ref_; }
  void set_tape_ref(TapeRef ref) { tape_ref_ = ref; }

  // "f32[2, 3] on cpu:0"
  std::string ToString() const;

 private:
  // Throw base::UsageError with this tensor's name.
  [[noreturn]] void ThrowNoHostMemory() const;
  [[noreturn]] void ThrowOtherType(DType asked) const;

  StoragePtr storage_;
  std::size_t offset_bytes_ = 0;
  Shape shape_;
  Device device_;
  DType dtype_ = DType::kF32;
  bool defined_ = false;
  TapeRef tape_ref_;
};

using TensorList = absl::InlinedVector<Tensor, 2>;

// Whether shape, dtype and bits are the same. NaNs compare by their bits.
bool BitEqual(const Tensor& a, const Tensor& b);

}  // namespace troupe::nn

#endif  // NN_TENSOR_TENSOR_H_
