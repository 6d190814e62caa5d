// A dataset of images that are stored as bytes and converted to f32 while a
// batch is gathered.
//
//   ByteImages images;
//   images.shape = {28, 28, 1};              // H, W, C
//   images.pixels = pixels;                  // [N, H, W, C]
//   images.labels = labels;                  // [N], 0..num_classes-1
//   images.num_classes = 10;
//   Transforms transforms = {ToFloat(), Normalize({0.13f}, {0.3f})};
//   TROUPE_ASSIGN_OR_RETURN(
//       DatasetPtr d, MakeImageDataset(std::move(images), transforms));
//
// The pointwise transforms at the head of the list are folded into one table of
// 256 floats per channel, so that a gather is one look-up per byte (about half
// a nanosecond). The rest of the list is applied to the f32 image; if the list
// begins with a random transform, this gets the bytes as f32 0..255.

#ifndef DATA_IMAGE_DATASET_H_
#define DATA_IMAGE_DATASET_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/transform.h"

namespace troupe::data {

struct ByteImages {
  nn::Shape shape;                   // H, W, C
  std::vector<std::uint8_t> pixels;  // [N, H, W, C]
  std::vector<std::uint8_t> labels;  // [N]
  std::int64_t num_classes = 0;
};

// Returns samples [begin, end) of `images`.
//   kInvalidArgument: the range is not within the images.
absl::StatusOr<ByteImages> TakeImages(const ByteImages& images,
                                      std::int64_t begin, std::int64_t end);

//   kInvalidArgument: counts of pixels and labels do not match, a label is not
//                     a class, a transform does not fit.
absl::StatusOr<DatasetPtr> MakeImageDataset(ByteImages images,
                                            Transforms transforms);

}  // namespace troupe::data

#endif  // DATA_IMAGE_DATASET_H_
