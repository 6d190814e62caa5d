#include "data/synthetic/synthetic.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "data/in_memory_dataset.h"
#include "nn/random/philox.h"

namespace troupe::data {
namespace {

constexpr std::int64_t kTeacherInputsMax = 64;

// The linear map from inputs to targets: [outputs, inputs], rows of length one
// on average.
struct Teacher {
  std::int64_t inputs;
  std::int64_t outputs;
  std::vector<float> weights;

  // Computes `scores` [outputs] of the sample whose inputs begin at `x`.
  void Score(const float* x, float* scores) const {
    for (std::int64_t o = 0; o < outputs; ++o) {
      double sum = 0;
      for (std::int64_t i = 0; i < inputs; ++i) {
        sum += static_cast<double>(weights[o * inputs + i]) * x[i];
      }
      scores[o] = static_cast<float>(sum);
    }
  }
};

Teacher DrawTeacher(const SyntheticOptions& options) {
  Teacher teacher;
  teacher.inputs = std::min(options.input_shape.numel(), kTeacherInputsMax);
  teacher.outputs =
      options.num_classes > 0 ? options.num_classes : options.target_dim;
  nn::RandomPosition position;
  position.path = nn::HashName("data.synthetic.teacher");
  nn::RandomStream draws(nn::RandomKey(options.seed, nn::Purpose::kData),
                         position);
  const double scale = 1.0 / std::sqrt(static_cast<double>(teacher.inputs));
  teacher.weights.resize(teacher.inputs * teacher.outputs);
  for (float& weight : teacher.weights) {
    weight = static_cast<float>(scale * draws.Normal());
  }
  return teacher;
}

absl::Status Check(const SyntheticOptions& options) {
  const bool regression = options.num_classes == 0;
  if (options.count < 1 || options.num_classes < 0 ||
      (regression && options.target_dim < 1) ||
      options.input_shape.rank() < 1 ||
      options.input_shape.rank() >= nn::Shape::kMaxRank ||
      options.input_shape.numel() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "synthetic data needs at least one sample, input and target, not ",
        options.count, " samples of ", options.input_shape.ToString(), ", ",
        options.num_classes, " classes, target_dim ", options.target_dim,
        "; raise what is 0"));
  }
  // Products of sizes are computed in double, which they do not overflow.
  const double inputs = static_cast<double>(options.input_shape.numel());
  const double outputs = regression ? options.target_dim : options.num_classes;
  const double sample = inputs + (regression ? outputs : 2);
  const double teacher = std::min<double>(inputs, kTeacherInputsMax) * outputs;
  const double bytes = sizeof(float) * (sample * options.count + teacher);
  if (bytes > static_cast<double>(kSyntheticBytesMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("synthetic data of ", bytes, " bytes (", options.count,
                     " samples of ", options.input_shape.ToString(),
                     ", targets of ", outputs, ") are more than the limit of ",
                     kSyntheticBytesMax, "; make fewer or smaller samples"));
  }
  return absl::OkStatus();
}

absl::StatusOr<nn::Tensor> CreateTargets(const SyntheticOptions& options,
                                         nn::Allocator& allocator) {
  if (options.num_classes > 0) {
    return nn::Tensor::Create({options.count}, nn::DType::kI64, allocator);
  }
  return nn::Tensor::Create({options.count, options.target_dim},
                            nn::DType::kF32, allocator);
}

void FillInputs(const SyntheticOptions& options, absl::string_view split,
                const nn::Tensor& inputs) {
  const nn::RandomKey key(options.seed, nn::Purpose::kData);
  nn::RandomPosition position;
  position.path = nn::HashName(absl::StrCat("data.synthetic.", split));
  const std::int64_t width = options.input_shape.numel();
  float* row = inputs.data<float>();
  for (std::int64_t i = 0; i < options.count; ++i, row += width) {
    position.position = static_cast<std::uint32_t>(i);
    nn::RandomStream draws(key, position);
    for (std::int64_t j = 0; j < width; ++j) {
      row[j] = static_cast<float>(draws.Normal());
    }
  }
}

void FillTargets(const SyntheticOptions& options, const nn::Tensor& inputs,
                 const nn::Tensor& targets) {
  const Teacher teacher = DrawTeacher(options);
  const std::int64_t width = options.input_shape.numel();
  const float* row = inputs.data<float>();
  std::vector<float> scores(teacher.outputs);
  for (std::int64_t i = 0; i < options.count; ++i, row += width) {
    teacher.Score(row, scores.data());
    if (options.num_classes == 0) {
      std::copy(scores.begin(), scores.end(),
                targets.data<float>() + i * teacher.outputs);
    } else {
      targets.data<std::int64_t>()[i] =
          std::max_element(scores.begin(), scores.end()) - scores.begin();
    }
  }
}

}  // namespace

absl::StatusOr<DatasetPtr> MakeSyntheticDataset(const SyntheticOptions& options,
                                                absl::string_view split) {
  TROUPE_RETURN_IF_ERROR(Check(options));
  nn::CachingAllocator allocator;
  std::vector<std::int64_t> dims = {options.count};
  dims.insert(dims.end(), options.input_shape.dims().begin(),
              options.input_shape.dims().end());
  TROUPE_ASSIGN_OR_RETURN(
      const nn::Tensor inputs,
      nn::Tensor::Create(nn::Shape(dims), nn::DType::kF32, allocator));
  TROUPE_ASSIGN_OR_RETURN(const nn::Tensor targets,
                          CreateTargets(options, allocator));
  FillInputs(options, split, inputs);
  FillTargets(options, inputs, targets);
  return MakeInMemoryDataset(inputs, targets, options.num_classes);
}

}  // namespace troupe::data
