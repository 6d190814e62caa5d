#include "data/images/color_jitter.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "nn/random/philox.h"

namespace troupe::data {
namespace {

constexpr std::int64_t kChannels = 3;

float Clamp(float value) { return std::clamp(value, 0.0f, 1.0f); }

float GreyOf(const float* rgb) {
  return 0.2989f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2];
}

float Blend(float value, float other, float factor) {
  return Clamp(factor * value + (1.0f - factor) * other);
}

struct Hsv {
  float hue;  // [0, 1)
  float saturation;
  float value;
};

Hsv HsvOf(const float* rgb) {
  const float r = rgb[0], g = rgb[1], b = rgb[2];
  const float most = std::max({r, g, b});
  const float least = std::min({r, g, b});
  const float range = most - least;
  if (range == 0) return {0, 0, most};
  const float rc = (most - r) / range;
  const float gc = (most - g) / range;
  const float bc = (most - b) / range;
  const float sixths = most == r   ? bc - gc
                       : most == g ? 2.0f + rc - bc
                                   : 4.0f + gc - rc;
  return {std::fmod(sixths / 6.0f + 1.0f, 1.0f), range / most, most};
}

void SetHsv(const Hsv& hsv, float* rgb) {
  const float sixths = hsv.hue * 6.0f;
  const float whole = std::floor(sixths);
  const float part = sixths - whole;
  const float v = hsv.value;
  const float p = Clamp(v * (1.0f - hsv.saturation));
  const float q = Clamp(v * (1.0f - hsv.saturation * part));
  const float t = Clamp(v * (1.0f - hsv.saturation * (1.0f - part)));
  // Colours for each sixth of the circle of hues.
  const std::array<std::array<float, kChannels>, 6> colors = {
      {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}}};
  const auto& color = colors[static_cast<std::size_t>(whole) % colors.size()];
  std::copy(color.begin(), color.end(), rgb);
}

class ColorJitterTransform : public Transform {
 public:
  ColorJitterTransform(const ColorJitterOptions& options, std::uint64_t seed)
      : options_(options), random_(seed, nn::Purpose::kAugment) {}

  absl::Status Check(const nn::Shape& shape) const override {
    if (shape.rank() != 3 || shape[2] != kChannels) {
      return absl::InvalidArgumentError(
          absl::StrCat("ColorJitter needs images [H, W, 3], not samples of ",
                       shape.ToString(), "; leave it out for others"));
    }
    const ColorJitterOptions& o = options_;
    if (o.brightness >= 0 && o.contrast >= 0 && o.saturation >= 0 &&
        o.hue >= 0 && o.hue <= 0.5) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "ColorJitter by brightness ", o.brightness, ", contrast ", o.contrast,
        ", saturation ", o.saturation, " and hue ", o.hue,
        "; give none that is negative, and a hue of at most 0.5"));
  }

  bool pointwise() const override { return false; }

  void Apply(const SampleKey& key, const nn::Shape& shape,
             float* values) const override {
    nn::RandomPosition position;
    position.step = static_cast<std::uint32_t>(key.epoch);
    position.position = static_cast<std::uint32_t>(key.index);
    position.path = nn::HashName("data.jitter_colors");
    nn::RandomStream draws(random_, position);
    std::array<int, 4> order = {0, 1, 2, 3};
    draws.Shuffle(order.begin(), order.end());
    const float brightness = Factor(options_.brightness, draws);
    const float contrast = Factor(options_.contrast, draws);
    const float saturation = Factor(options_.saturation, draws);
    const float turn =
        static_cast<float>(draws.Uniform(-options_.hue, options_.hue));
    const std::int64_t count = shape[0] * shape[1];
    for (const int change : order) {
      if (change == 0 && options_.brightness > 0) {
        AdjustBrightness(brightness, count, values);
      } else if (change == 1 && options_.contrast > 0) {
        AdjustContrast(contrast, count, values);
      } else if (change == 2 && options_.saturation > 0) {
        AdjustSaturation(saturation, count, values);
      } else if (change == 3 && options_.hue > 0) {
        AdjustHue(turn, count, values);
      }
    }
  }

 private:
  static float Factor(double reach, nn::RandomStream& draws) {
    return static_cast<float>(
        draws.Uniform(std::max(0.0, 1.0 - reach), 1.0 + reach));
  }

  const ColorJitterOptions options_;
  const nn::RandomKey random_;
};

}  // namespace

void AdjustBrightness(float factor, std::int64_t count, float* rgb) {
  for (std::int64_t i = 0; i < count * kChannels; ++i) {
    rgb[i] = Clamp(factor * rgb[i]);
  }
}

void AdjustContrast(float factor, std::int64_t count, float* rgb) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    sum += static_cast<double>(GreyOf(rgb + i * kChannels));
  }
  const float mean = static_cast<float>(sum / static_cast<double>(count));
  for (std::int64_t i = 0; i < count * kChannels; ++i) {
    rgb[i] = Blend(rgb[i], mean, factor);
  }
}

void AdjustSaturation(float factor, std::int64_t count, float* rgb) {
  for (std::int64_t i = 0; i < count; ++i, rgb += kChannels) {
    const float grey = GreyOf(rgb);
    for (std::int64_t c = 0; c < kChannels; ++c) {
      rgb[c] = Blend(rgb[c], grey, factor);
    }
  }
}

void AdjustHue(float turn, std::int64_t count, float* rgb) {
  for (std::int64_t i = 0; i < count; ++i, rgb += kChannels) {
    Hsv hsv = HsvOf(rgb);
    const float turned = hsv.hue + turn;
    hsv.hue = turned - std::floor(turned);
    SetHsv(hsv, rgb);
  }
}

TransformPtr ColorJitter(const ColorJitterOptions& options,
                         std::uint64_t seed) {
  return std::make_shared<ColorJitterTransform>(options, seed);
}

}  // namespace troupe::data
