#include "data/image_dataset.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::data {
namespace {

constexpr std::int64_t kBytes = 256;  // values of a byte

// Returns the values of the pointwise `transforms` for every byte: [256, C].
std::vector<float> TableOf(const Transforms& transforms,
                           std::int64_t channels) {
  std::vector<float> table(kBytes * channels);
  for (std::int64_t i = 0; i < kBytes * channels; ++i) {
    table[i] = static_cast<float>(i / channels);
  }
  for (const TransformPtr& transform : transforms) {
    transform->Apply(SampleKey(), {kBytes, channels}, table.data());
  }
  return table;
}

class ImageDataset : public Dataset {
 public:
  ImageDataset(ByteImages images, const Transforms& pointwise, Transforms rest)
      : Dataset(static_cast<std::int64_t>(images.labels.size()),
                ClassificationSpec(images.shape, images.num_classes)),
        images_(std::move(images)),
        table_(TableOf(pointwise, images_.shape[2])),
        rest_(std::move(rest)) {}

  absl::StatusOr<std::vector<std::int64_t>> Labels() const override {
    return std::vector<std::int64_t>(images_.labels.begin(),
                                     images_.labels.end());
  }

 private:
  absl::Status Gather(absl::Span<const std::int64_t> indices,
                      std::int64_t epoch, const nn::Tensor& inputs,
                      const nn::Tensor& targets) const override {
    const std::int64_t bytes = images_.shape.numel();
    float* values = inputs.data<float>();
    std::int64_t* labels = targets.data<std::int64_t>();
    for (std::int64_t index : indices) {
      LookUp(images_.pixels.data() + index * bytes, bytes, values);
      for (const TransformPtr& transform : rest_) {
        transform->Apply({epoch, index}, images_.shape, values);
      }
      values += bytes;
      *labels++ = images_.labels[index];
    }
    return absl::OkStatus();
  }

  void LookUp(const std::uint8_t* pixels, std::int64_t bytes,
              float* values) const {
    const float* table = table_.data();
    const std::int64_t channels = images_.shape[2];
    if (channels == 1) {
      for (std::int64_t i = 0; i < bytes; ++i) values[i] = table[pixels[i]];
      return;
    }
    for (std::int64_t i = 0; i < bytes; i += channels) {
      for (std::int64_t c = 0; c < channels; ++c) {
        values[i + c] = table[pixels[i + c] * channels + c];
      }
    }
  }

  const ByteImages images_;
  const std::vector<float> table_;  // [256, C]
  const Transforms rest_;
};

absl::Status CheckImages(const ByteImages& images) {
  if (images.shape.rank() != 3 || images.shape.numel() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("images have the shape [H, W, C], not ",
                     images.shape.ToString(), "; give all three"));
  }
  const std::size_t bytes = static_cast<std::size_t>(images.shape.numel());
  if (images.pixels.size() % bytes != 0 ||
      images.pixels.size() / bytes != images.labels.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(images.pixels.size(), " bytes of pixels are not ",
                     images.labels.size(), " images ", images.shape.ToString(),
                     ", one for each label; give as many of both"));
  }
  for (std::size_t i = 0; i < images.labels.size(); ++i) {
    if (images.labels[i] >= images.num_classes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "label ", i, " is ", images.labels[i], ", not a class below ",
          images.num_classes, "; number classes from 0"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ByteImages> TakeImages(const ByteImages& images,
                                      std::int64_t begin, std::int64_t end) {
  const std::int64_t count = static_cast<std::int64_t>(images.labels.size());
  if (begin < 0 || end < begin || end > count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "images [", begin, ", ", end, ") are asked for, but there are only ",
        count, "; ask for fewer"));
  }
  const std::int64_t bytes = images.shape.numel();
  ByteImages taken;
  taken.shape = images.shape;
  taken.num_classes = images.num_classes;
  taken.pixels.assign(images.pixels.begin() + begin * bytes,
                      images.pixels.begin() + end * bytes);
  taken.labels.assign(images.labels.begin() + begin,
                      images.labels.begin() + end);
  return taken;
}

absl::StatusOr<DatasetPtr> MakeImageDataset(ByteImages images,
                                            Transforms transforms) {
  TROUPE_RETURN_IF_ERROR(CheckImages(images));
  TROUPE_RETURN_IF_ERROR(CheckTransforms(transforms, images.shape));
  const auto rest = std::find_if(
      transforms.begin(), transforms.end(),
      [](const TransformPtr& transform) { return !transform->pointwise(); });
  return DatasetPtr(std::make_shared<ImageDataset>(
      std::move(images), Transforms(transforms.begin(), rest),
      Transforms(rest, transforms.end())));
}

}  // namespace troupe::data
