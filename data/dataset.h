// A map-style dataset: samples by index, which a loader gathers into batches.
//
//   const SampleSpec& spec = train->spec();            // registry.h, glyphs.h
//   nn::Tensor x = *nn::Tensor::Create(spec.InputShape(32), spec.input_dtype,
//                                      allocator);
//   nn::Tensor y = *nn::Tensor::Create(spec.TargetShape(32), spec.target_dtype,
//                                      allocator);
//   absl::Status s = train->Fill(indices, /*epoch=*/0, x, y);  // 32 indices
//
// Letters: B samples in the batch; H, W, C height, width and channels of an
// image; D length of a vector; T of a sequence of tokens. Inputs are
// [B, H, W, C], [B, D] or i64 [B, T]; targets are class numbers (num_classes >
// 0), i64 [B] or i64 [B, T], or vectors f32 [B, D].
//
// A new kind of dataset derives from Dataset and overrides Gather(), which is
// called after all checks. Lifetime: datasets are shared and immutable.
// Threads: any number may call Fill() at once, into different tensors.

#ifndef DATA_DATASET_H_
#define DATA_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/tensor/tensor.h"

namespace troupe::data {

// Shape and dtype of one sample, without the batch axis.
struct SampleSpec {
  nn::Shape input_shape;  // (H, W, C), (D) or (T)
  nn::DType input_dtype = nn::DType::kF32;
  nn::Shape target_shape;  // () for a class, (T) for T of them, (D) a vector
  nn::DType target_dtype = nn::DType::kI64;
  // Targets are numbers 0..num_classes-1; 0 when the target is a vector.
  std::int64_t num_classes = 0;

  bool is_classification() const { return num_classes > 0; }
  // Return [B, ...].
  nn::Shape InputShape(std::int64_t batch) const;
  nn::Shape TargetShape(std::int64_t batch) const;
  // Returns "f32[28, 28, 1] -> class of 10", "i64[64] -> i64[64] of 65 classes"
  // or "f32[10] -> f32[2]".
  std::string ToString() const;

  friend bool operator==(const SampleSpec& a, const SampleSpec& b) {
    return a.input_shape == b.input_shape && a.input_dtype == b.input_dtype &&
           a.target_shape == b.target_shape &&
           a.target_dtype == b.target_dtype && a.num_classes == b.num_classes;
  }
};

// Returns the spec of f32 inputs of `input_shape` with targets i64 classes.
SampleSpec ClassificationSpec(const nn::Shape& input_shape,
                              std::int64_t num_classes);
// Returns the spec of f32 inputs of `input_shape`, targets f32 (target_dim).
SampleSpec RegressionSpec(const nn::Shape& input_shape,
                          std::int64_t target_dim);

class Dataset {
 public:
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  std::int64_t size() const { return size_; }
  const SampleSpec& spec() const { return spec_; }

  // Writes sample indices[b] to row b of `inputs` and `targets`, host tensors
  // of exactly the shapes and dtypes of spec(); B = indices.size() may be 0.
  // `epoch` matters only to random transforms (transform.h).
  //   kInvalidArgument: a tensor has another shape, dtype or device.
  //   kOutOfRange:      an index is not in [0, size()).
  //   other:            errors of a dataset that reads files.
  // After an error the tensors' contents are unspecified.
  absl::Status Fill(absl::Span<const std::int64_t> indices, std::int64_t epoch,
                    const nn::Tensor& inputs, const nn::Tensor& targets) const;

  // Returns the class of each sample, by index. Unless a dataset overrides it,
  // this reads all samples.
  //   kInvalidArgument: a sample has no class, or several.
  //   other:            errors of Fill().
  virtual absl::StatusOr<std::vector<std::int64_t>> Labels() const;

 protected:
  Dataset(std::int64_t size, const SampleSpec& spec);

 private:
  // Does the work of Fill() after its checks: indices and tensors are valid.
  virtual absl::Status Gather(absl::Span<const std::int64_t> indices,
                              std::int64_t epoch, const nn::Tensor& inputs,
                              const nn::Tensor& targets) const = 0;

  const std::int64_t size_;
  const SampleSpec spec_;
};

using DatasetPtr = std::shared_ptr<const Dataset>;

}  // namespace troupe::data

#endif  // DATA_DATASET_H_
