#include "data/in_memory_dataset.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace troupe::data {
namespace {

// Copies rows `indices` of `from`, of row_bytes each, to consecutive rows.
void CopyRows(const nn::Tensor& from, std::size_t row_bytes,
              absl::Span<const std::int64_t> indices, const nn::Tensor& to) {
  const char* source = static_cast<const char*>(from.raw());
  char* row = static_cast<char*>(to.raw());
  if (row_bytes == sizeof(std::int64_t)) {  // avoids a call for each class
    for (std::int64_t index : indices) {
      std::memcpy(row, source + index * sizeof(std::int64_t),
                  sizeof(std::int64_t));
      row += sizeof(std::int64_t);
    }
    return;
  }
  for (std::int64_t index : indices) {
    std::memcpy(row, source + index * row_bytes, row_bytes);
    row += row_bytes;
  }
}

// Returns the shape of one row of `tensor`.
nn::Shape RowShape(const nn::Tensor& tensor) {
  return nn::Shape(tensor.shape().dims().subspan(1));
}

std::size_t RowBytes(const nn::Tensor& tensor) {
  return RowShape(tensor).numel() * nn::SizeOf(tensor.dtype());
}

class InMemoryDataset : public Dataset {
 public:
  InMemoryDataset(const SampleSpec& spec, nn::Tensor inputs, nn::Tensor targets)
      : Dataset(inputs.dim(0), spec),
        inputs_(std::move(inputs)),
        targets_(std::move(targets)),
        input_bytes_(RowBytes(inputs_)),
        target_bytes_(RowBytes(targets_)) {}

 private:
  absl::Status Gather(absl::Span<const std::int64_t> indices, std::int64_t,
                      const nn::Tensor& inputs,
                      const nn::Tensor& targets) const override {
    CopyRows(inputs_, input_bytes_, indices, inputs);
    CopyRows(targets_, target_bytes_, indices, targets);
    return absl::OkStatus();
  }

  const nn::Tensor inputs_;
  const nn::Tensor targets_;
  const std::size_t input_bytes_;  // bytes of one row
  const std::size_t target_bytes_;
};

absl::Status CheckRows(const char* which, const nn::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_meta() || tensor.shape().rank() < 1 ||
      tensor.device().type == nn::DeviceType::kCuda) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a dataset needs ", which, " with a rows axis, in host memory, not ",
        tensor.ToString(), "; copy them there"));
  }
  return absl::OkStatus();
}

absl::Status CheckClasses(const nn::Tensor& targets, std::int64_t num_classes) {
  if (num_classes < 0 || targets.dtype() != nn::DType::kI64) {
    return absl::InvalidArgumentError(absl::StrCat(
        "targets of ", num_classes, " classes must be i64 class numbers, not ",
        targets.ToString()));
  }
  const absl::Span<std::int64_t> labels = targets.span<std::int64_t>();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= num_classes) {
      return absl::InvalidArgumentError(
          absl::StrCat("target ", i, " is ", labels[i], ", not a class below ",
                       num_classes, "; number classes from 0"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DatasetPtr> MakeInMemoryDataset(nn::Tensor inputs,
                                               nn::Tensor targets,
                                               std::int64_t num_classes) {
  TROUPE_RETURN_IF_ERROR(CheckRows("inputs", inputs));
  TROUPE_RETURN_IF_ERROR(CheckRows("targets", targets));
  if (inputs.dim(0) != targets.dim(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(inputs.dim(0), " rows of inputs but ", targets.dim(0),
                     " rows of targets; give as many of both"));
  }
  if (num_classes != 0) {
    TROUPE_RETURN_IF_ERROR(CheckClasses(targets, num_classes));
  }
  SampleSpec spec;
  spec.input_shape = RowShape(inputs);
  spec.input_dtype = inputs.dtype();
  spec.target_shape = RowShape(targets);
  spec.target_dtype = targets.dtype();
  spec.num_classes = num_classes;
  return DatasetPtr(std::make_shared<InMemoryDataset>(spec, std::move(inputs),
                                                      std::move(targets)));
}

}  // namespace troupe::data
