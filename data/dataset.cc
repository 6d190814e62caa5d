#include "data/dataset.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/tensor/caching_allocator.h"

namespace troupe::data {
namespace {

// Returns `shape` with an axis of `batch` before it. It does not allocate,
// since it runs for every micro-batch.
nn::Shape WithBatch(std::int64_t batch, const nn::Shape& shape) {
  std::array<std::int64_t, nn::Shape::kMaxRank> dims = {batch};
  std::copy(shape.dims().begin(), shape.dims().end(), dims.begin() + 1);
  const std::size_t rank = static_cast<std::size_t>(shape.rank()) + 1;
  return nn::Shape(absl::MakeConstSpan(dims.data(), rank));
}

// Returns whether `tensor` is [batch, shape...], without building that shape,
// since it runs for every micro-batch.
bool Fits(const nn::Tensor& tensor, std::int64_t batch, const nn::Shape& shape,
          nn::DType dtype) {
  if (!tensor.defined() || tensor.is_meta() || tensor.dtype() != dtype ||
      tensor.device().type == nn::DeviceType::kCuda ||
      tensor.shape().rank() != shape.rank() + 1 || tensor.dim(0) != batch) {
    return false;
  }
  for (int i = 0; i < shape.rank(); ++i) {
    if (tensor.dim(i + 1) != shape[i]) return false;
  }
  return true;
}

absl::Status WrongTensor(const char* which, const nn::Tensor& tensor,
                         const nn::Shape& shape, nn::DType dtype) {
  return absl::InvalidArgumentError(absl::StrCat(
      "a batch of this dataset needs ", which, " ", nn::DTypeName(dtype),
      shape.ToString(), " in host memory, not ", tensor.ToString(),
      "; make it by spec()"));
}

}  // namespace

nn::Shape SampleSpec::InputShape(std::int64_t batch) const {
  return WithBatch(batch, input_shape);
}

nn::Shape SampleSpec::TargetShape(std::int64_t batch) const {
  return WithBatch(batch, target_shape);
}

std::string SampleSpec::ToString() const {
  const std::string input =
      absl::StrCat(nn::DTypeName(input_dtype), input_shape.ToString(), " -> ");
  if (is_classification() && target_shape.rank() == 0) {
    return absl::StrCat(input, "class of ", num_classes);
  }
  const std::string target =
      absl::StrCat(nn::DTypeName(target_dtype), target_shape.ToString());
  return is_classification()
             ? absl::StrCat(input, target, " of ", num_classes, " classes")
             : absl::StrCat(input, target);
}

SampleSpec ClassificationSpec(const nn::Shape& input_shape,
                              std::int64_t num_classes) {
  SampleSpec spec;
  spec.input_shape = input_shape;
  spec.num_classes = num_classes;
  return spec;
}

SampleSpec RegressionSpec(const nn::Shape& input_shape,
                          std::int64_t target_dim) {
  SampleSpec spec;
  spec.input_shape = input_shape;
  spec.target_shape = {target_dim};
  spec.target_dtype = nn::DType::kF32;
  return spec;
}

Dataset::Dataset(std::int64_t size, const SampleSpec& spec)
    : size_(size), spec_(spec) {
  TROUPE_CHECK(size >= 0, "a dataset has a number of samples");
  TROUPE_CHECK(spec.input_shape.rank() < nn::Shape::kMaxRank &&
                   spec.target_shape.rank() < nn::Shape::kMaxRank,
               "a sample's shape leaves room for the batch axis");
}

absl::Status Dataset::Fill(absl::Span<const std::int64_t> indices,
                           std::int64_t epoch, const nn::Tensor& inputs,
                           const nn::Tensor& targets) const {
  const std::int64_t batch = static_cast<std::int64_t>(indices.size());
  if (!Fits(inputs, batch, spec_.input_shape, spec_.input_dtype)) {
    return WrongTensor("inputs", inputs, spec_.InputShape(batch),
                       spec_.input_dtype);
  }
  if (!Fits(targets, batch, spec_.target_shape, spec_.target_dtype)) {
    return WrongTensor("targets", targets, spec_.TargetShape(batch),
                       spec_.target_dtype);
  }
  for (std::int64_t index : indices) {
    if (index < 0 || index >= size_) {
      return absl::OutOfRangeError(
          absl::StrCat("sample ", index, " of a dataset of ", size_,
                       " samples; use 0 to its size() - 1"));
    }
  }
  return Gather(indices, epoch, inputs, targets);
}

absl::StatusOr<std::vector<std::int64_t>> Dataset::Labels() const {
  if (!spec_.is_classification() || spec_.target_shape.rank() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("samples ", spec_.ToString(),
                     " have no class each; use data of classes"));
  }
  nn::CachingAllocator memory;
  TROUPE_ASSIGN_OR_RETURN(
      const nn::Tensor input,
      nn::Tensor::Create(spec_.InputShape(1), spec_.input_dtype, memory));
  TROUPE_ASSIGN_OR_RETURN(
      const nn::Tensor target,
      nn::Tensor::Create(spec_.TargetShape(1), spec_.target_dtype, memory));
  std::vector<std::int64_t> labels;
  labels.reserve(size_);
  for (std::int64_t i = 0; i < size_; ++i) {
    TROUPE_RETURN_IF_ERROR(Gather({i}, /*epoch=*/0, input, target));
    labels.push_back(target.data<std::int64_t>()[0]);
  }
  return labels;
}

}  // namespace troupe::data
