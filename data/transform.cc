#include "data/transform.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "nn/random/philox.h"

namespace troupe::data {
namespace {

absl::Status NotAnImage(const char* what, const nn::Shape& shape) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, " needs images [H, W, C], not samples of ",
                   shape.ToString(), "; leave it out for others"));
}

nn::RandomStream DrawsOf(const nn::RandomKey& random, const SampleKey& key,
                         absl::string_view name) {
  nn::RandomPosition position;
  position.step = static_cast<std::uint32_t>(key.epoch);
  position.position = static_cast<std::uint32_t>(key.index);
  position.path = nn::HashName(name);
  return nn::RandomStream(random, position);
}

class ToFloatTransform : public Transform {
 public:
  absl::Status Check(const nn::Shape&) const override {
    return absl::OkStatus();
  }
  bool pointwise() const override { return true; }
  void Apply(const SampleKey&, const nn::Shape& shape,
             float* values) const override {
    const std::int64_t count = shape.numel();
    for (std::int64_t i = 0; i < count; ++i) values[i] /= 255.0f;
  }
};

class NormalizeTransform : public Transform {
 public:
  NormalizeTransform(std::vector<float> mean, std::vector<float> stddev)
      : mean_(std::move(mean)), stddev_(std::move(stddev)) {}

  absl::Status Check(const nn::Shape& shape) const override {
    const std::size_t channels = shape.rank() > 0 ? shape[-1] : 1;
    if (mean_.size() != channels || stddev_.size() != channels) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Normalize has ", mean_.size(), " means and ", stddev_.size(),
          " standard deviations; the samples ", shape.ToString(), " have ",
          channels, " channels; give one of each for a channel"));
    }
    for (float stddev : stddev_) {
      if (!(stddev > 0)) {
        return absl::InvalidArgumentError(
            absl::StrCat("Normalize has a standard deviation of ", stddev,
                         "; give positive ones"));
      }
    }
    return absl::OkStatus();
  }
  bool pointwise() const override { return true; }
  void Apply(const SampleKey&, const nn::Shape& shape,
             float* values) const override {
    const std::size_t channels = mean_.size();
    const std::size_t count = static_cast<std::size_t>(shape.numel());
    for (std::size_t i = 0; i < count; i += channels) {
      for (std::size_t c = 0; c < channels; ++c) {
        values[i + c] = (values[i + c] - mean_[c]) / stddev_[c];
      }
    }
  }

 private:
  const std::vector<float> mean_;
  const std::vector<float> stddev_;
};

class RandomShiftTransform : public Transform {
 public:
  RandomShiftTransform(int pixels_max, std::uint64_t seed)
      : pixels_max_(pixels_max), random_(seed, nn::Purpose::kAugment) {}

  absl::Status Check(const nn::Shape& shape) const override {
    if (shape.rank() != 3) return NotAnImage("RandomShift", shape);
    if (pixels_max_ < 0 || pixels_max_ >= std::min(shape[0], shape[1])) {
      return absl::InvalidArgumentError(absl::StrCat(
          "RandomShift by up to ", pixels_max_, " pixels does not fit images ",
          shape.ToString(), "; shift by fewer"));
    }
    return absl::OkStatus();
  }
  bool pointwise() const override { return false; }
  void Apply(const SampleKey& key, const nn::Shape& shape,
             float* values) const override {
    nn::RandomStream draws = DrawsOf(random_, key, "data.random_shift");
    const std::uint64_t outcomes = 2 * std::uint64_t(pixels_max_) + 1;
    const std::int64_t down =
        static_cast<std::int64_t>(draws.Below(outcomes)) - pixels_max_;
    const std::int64_t right =
        static_cast<std::int64_t>(draws.Below(outcomes)) - pixels_max_;
    Shift(shape, down, right, values);
  }

 private:
  static void Shift(const nn::Shape& shape, std::int64_t down,
                    std::int64_t right, float* values) {
    const std::int64_t height = shape[0];
    const std::int64_t row = shape[1] * shape[2];
    const std::int64_t skip = right * shape[2];  // values, either sign
    const std::int64_t kept = row - std::abs(skip);
    // Rows are visited so that none is overwritten before it has moved.
    for (std::int64_t i = 0; i < height; ++i) {
      const std::int64_t y = down > 0 ? height - 1 - i : i;
      float* to = values + y * row;
      const std::int64_t from_y = y - down;
      if (from_y < 0 || from_y >= height) {
        std::fill(to, to + row, 0.0f);
        continue;
      }
      const float* from = values + from_y * row;
      const std::int64_t first = std::max<std::int64_t>(skip, 0);
      std::memmove(to + first, from + std::max<std::int64_t>(-skip, 0),
                   kept * sizeof(float));
      std::fill(to, to + first, 0.0f);
      std::fill(to + first + kept, to + row, 0.0f);
    }
  }

  const int pixels_max_;
  const nn::RandomKey random_;
};

class RandomMirrorTransform : public Transform {
 public:
  explicit RandomMirrorTransform(std::uint64_t seed)
      : random_(seed, nn::Purpose::kAugment) {}

  absl::Status Check(const nn::Shape& shape) const override {
    if (shape.rank() != 3) return NotAnImage("RandomMirror", shape);
    return absl::OkStatus();
  }
  bool pointwise() const override { return false; }
  void Apply(const SampleKey& key, const nn::Shape& shape,
             float* values) const override {
    nn::RandomStream draws = DrawsOf(random_, key, "data.random_mirror");
    if (draws.Below(2) == 0) return;
    const std::int64_t width = shape[1];
    const std::int64_t channels = shape[2];
    for (std::int64_t y = 0; y < shape[0]; ++y) {
      float* row = values + y * width * channels;
      for (std::int64_t x = 0; x < width / 2; ++x) {
        std::swap_ranges(row + x * channels, row + (x + 1) * channels,
                         row + (width - 1 - x) * channels);
      }
    }
  }

 private:
  const nn::RandomKey random_;
};

class TransformedDataset : public Dataset {
 public:
  TransformedDataset(DatasetPtr base, Transforms transforms)
      : Dataset(base->size(), base->spec()),
        base_(std::move(base)),
        transforms_(std::move(transforms)) {}

  absl::StatusOr<std::vector<std::int64_t>> Labels() const override {
    return base_->Labels();
  }

 private:
  absl::Status Gather(absl::Span<const std::int64_t> indices,
                      std::int64_t epoch, const nn::Tensor& inputs,
                      const nn::Tensor& targets) const override {
    TROUPE_RETURN_IF_ERROR(base_->Fill(indices, epoch, inputs, targets));
    const nn::Shape& shape = spec().input_shape;
    float* values = inputs.data<float>();
    for (std::int64_t index : indices) {
      for (const TransformPtr& transform : transforms_) {
        transform->Apply({epoch, index}, shape, values);
      }
      values += shape.numel();
    }
    return absl::OkStatus();
  }

  const DatasetPtr base_;
  const Transforms transforms_;
};

}  // namespace

TransformPtr ToFloat() { return std::make_shared<ToFloatTransform>(); }

TransformPtr Normalize(std::vector<float> mean, std::vector<float> stddev) {
  return std::make_shared<NormalizeTransform>(std::move(mean),
                                              std::move(stddev));
}

TransformPtr RandomShift(int pixels_max, std::uint64_t seed) {
  return std::make_shared<RandomShiftTransform>(pixels_max, seed);
}

TransformPtr RandomMirror(std::uint64_t seed) {
  return std::make_shared<RandomMirrorTransform>(seed);
}

absl::Status CheckTransforms(const Transforms& transforms,
                             const nn::Shape& shape) {
  for (const TransformPtr& transform : transforms) {
    TROUPE_RETURN_IF_ERROR(transform->Check(shape));
  }
  return absl::OkStatus();
}

absl::StatusOr<DatasetPtr> MakeTransformedDataset(DatasetPtr base,
                                                  Transforms transforms) {
  TROUPE_CHECK(base != nullptr, "a dataset to transform");
  if (base->spec().input_dtype != nn::DType::kF32) {
    return absl::InvalidArgumentError(
        absl::StrCat("only f32 inputs are transformed, not ",
                     base->spec().ToString(), "; convert them first"));
  }
  TROUPE_RETURN_IF_ERROR(CheckTransforms(transforms, base->spec().input_shape));
  return DatasetPtr(std::make_shared<TransformedDataset>(
      std::move(base), std::move(transforms)));
}

}  // namespace troupe::data
