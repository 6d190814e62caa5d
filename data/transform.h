// Transforms of images between the file and the batch, like torchvision's.
//
//   Transforms train = {RandomShift(/*pixels_max=*/4, seed),
//                       RandomMirror(seed), ToFloat(),
//                       Normalize({0.49f}, {0.25f})};
//   TROUPE_ASSIGN_OR_RETURN(
//       DatasetPtr d, MakeTransformedDataset(raw, {Normalize({5}, {2})}));
//
// Images are [H, W, C] f32, changed in place, in list order. A transform keeps
// the shape. A pointwise one (ToFloat, Normalize) depends on one value and its
// channel; a dataset of bytes (image_dataset.h) runs it once over all 256
// values and then looks them up, with the same bits.
//
// Random transforms draw from (seed, epoch, sample) alone, so a sample is the
// same on every rank that loads it, and different in each epoch.
// Transforms are immutable and shared; any thread may apply them.

#ifndef DATA_TRANSFORM_H_
#define DATA_TRANSFORM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/dataset.h"

namespace troupe::data {

// Identifies the sample that a transform is applied to.
struct SampleKey {
  std::int64_t epoch = 0;
  std::int64_t index = 0;  // index in the dataset
};

class Transform {
 public:
  virtual ~Transform() = default;

  // Returns kInvalidArgument with the reason if samples of `shape` cannot be
  // transformed. Called once, when a dataset is made.
  virtual absl::Status Check(const nn::Shape& shape) const = 0;

  // Returns whether an output value depends only on its input value and its
  // channel (the last axis).
  virtual bool pointwise() const = 0;

  // Transforms `values`, laid out as `shape`, in place. A pointwise transform
  // takes any extents before the channels.
  virtual void Apply(const SampleKey& key, const nn::Shape& shape,
                     float* values) const = 0;
};

using TransformPtr = std::shared_ptr<const Transform>;
using Transforms = std::vector<TransformPtr>;

// Returns x / 255: maps bytes 0..255 to [0, 1].
TransformPtr ToFloat();
// Returns (x - mean[c]) / stddev[c] for channel c. One pair for each channel.
TransformPtr Normalize(std::vector<float> mean, std::vector<float> stddev);
// Moves an image by up to `pixels_max` pixels along each axis, uniformly, and
// pads with 0 (the usual "pad and crop" of CIFAR-10; put it before Normalize,
// so that 0 is black).
TransformPtr RandomShift(int pixels_max, std::uint64_t seed);
// Mirrors left and right with probability one half.
TransformPtr RandomMirror(std::uint64_t seed);

// Checks every transform of the list against `shape`.
absl::Status CheckTransforms(const Transforms& transforms,
                             const nn::Shape& shape);

// Returns `base` with the transforms applied to its inputs, which are f32.
absl::StatusOr<DatasetPtr> MakeTransformedDataset(DatasetPtr base,
                                                  Transforms transforms);

}  // namespace troupe::data

#endif  // DATA_TRANSFORM_H_
