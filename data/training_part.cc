#include "data/training_part.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "data/sample_weights.h"
#include "data/subset.h"
#include "nn/random/philox.h"

namespace troupe::data {
namespace {

// Each sample is in one of the lists, which are sorted.
struct ShareCut {
  std::vector<std::int64_t> left;
  std::vector<std::int64_t> held;
};

// Holds back share * samples samples, rounded down.
ShareCut CutShare(std::int64_t samples, double share, std::uint64_t seed) {
  std::vector<std::int64_t> order(samples);
  std::iota(order.begin(), order.end(), std::int64_t{0});
  nn::RandomPosition position;
  position.path = nn::HashName("data.training_part");
  nn::RandomStream draws(nn::RandomKey(seed, nn::Purpose::kData), position);
  draws.Shuffle(order.begin(), order.end());
  const auto held =
      static_cast<std::int64_t>(static_cast<double>(samples) * share);
  ShareCut cut;
  cut.held.assign(order.end() - held, order.end());
  cut.left.assign(order.begin(), order.end() - held);
  std::sort(cut.held.begin(), cut.held.end());
  std::sort(cut.left.begin(), cut.left.end());
  return cut;
}

bool IsOfTokens(const std::string& kind) {
  return kind == "text" || kind == "tokens";
}

absl::Status CheckShare(const DatasetOptions& options) {
  const double share = options.part.validation_share;
  const std::string name =
      base::FieldName<&TrainingPartOptions::validation_share>();
  if (!(share >= 0 && share < 1)) {
    return base::FieldError<&TrainingPartOptions::validation_share>(
        absl::StrCat(name, " = ", share,
                     ": must be at least 0 and less than 1"));
  }
  if (share == 0) return absl::OkStatus();
  if (IsOfTokens(options.kind)) {
    return base::FieldError<&TrainingPartOptions::validation_share>(
        absl::StrCat(name, " = ", share, ": windows of a text overlap; use ",
                     base::FieldName<&DatasetOptions::val_fraction>(),
                     ", which holds back the end of a text or file"));
  }
  if (options.test_count == 0) return absl::OkStatus();
  return base::FieldError<&TrainingPartOptions::validation_share,
                          &DatasetOptions::test_count>(absl::StrCat(
      name, " and ", base::FieldName<&DatasetOptions::test_count>(),
      " are both set; remove one"));
}

// Replaces the test part by a share of the training samples, and returns the
// numbers of those that are left to train on.
absl::StatusOr<std::vector<std::int64_t>> HoldShare(
    const DatasetOptions& options,
    const std::function<absl::StatusOr<DatasetPtr>()>& open_plain,
    DataSplits& splits) {
  DatasetPtr plain = splits.train;
  if (options.augment) {
    TROUPE_ASSIGN_OR_RETURN(plain, open_plain());
  }
  const ShareCut cut = CutShare(splits.train->size(),
                                options.part.validation_share, options.seed);
  if (cut.held.empty() || cut.left.empty()) {
    return base::FieldError<&TrainingPartOptions::validation_share>(
        absl::StrCat(base::FieldName<&TrainingPartOptions::validation_share>(),
                     " = ", options.part.validation_share, " of ",
                     splits.train->size(), " samples leaves ",
                     cut.held.empty() ? "none to test with" : "no other",
                     "; give more samples or another share"));
  }
  const std::string others =
      splits.test == nullptr
          ? ""
          : absl::StrCat("; the ", splits.test->size(),
                         " test samples of the data are not used");
  splits.notes.push_back(absl::StrCat(
      cut.held.size(), " of ", splits.train->size(),
      " training samples are held back to test with, drawn by seed ",
      options.seed, others));
  TROUPE_ASSIGN_OR_RETURN(splits.test, MakeSubset(std::move(plain), cut.held));
  TROUPE_ASSIGN_OR_RETURN(splits.train,
                          MakeSubset(std::move(splits.train), cut.left));
  return cut.left;
}

// Makes the weights of `left`, the samples that are trained on.
absl::Status Weigh(const DatasetOptions& options, base::FileSystem& files,
                   std::int64_t samples, const std::vector<std::int64_t>& left,
                   DataSplits& splits) {
  if (options.part.balance_classes) {
    absl::StatusOr<SampleWeightsPtr> made = ClassBalancedWeights(*splits.train);
    if (!made.ok()) {
      return base::WithFields<&TrainingPartOptions::balance_classes>(
          made.status());
    }
    splits.weights = *std::move(made);
  }
  if (options.part.sample_weights.empty()) return absl::OkStatus();
  const std::string& path = options.part.sample_weights;
  absl::StatusOr<std::vector<double>> all =
      ReadSampleWeights(files, path, samples);
  if (!all.ok()) {
    return base::WithFields<&TrainingPartOptions::sample_weights>(all.status());
  }
  std::vector<double> weights;
  weights.reserve(left.size());
  for (const std::int64_t sample : left) weights.push_back((*all)[sample]);
  absl::StatusOr<SampleWeightsPtr> made = SampleWeights::Create(weights);
  if (!made.ok()) {
    return base::FieldError<&TrainingPartOptions::sample_weights>(
        absl::StrCat(path, ": ", made.status().message()));
  }
  splits.weights = *std::move(made);
  return absl::OkStatus();
}

}  // namespace

bool ReadsTraining(const DatasetOptions& options) {
  return !options.part.trained_on || options.part.validation_share > 0;
}

absl::Status WithReasonToRead(const DatasetOptions& options,
                              const absl::Status& status) {
  if (!options.part.trained_on || !ReadsTraining(options)) return status;
  return base::WithMessage(
      status,
      absl::StrCat(status.message(), " (",
                   base::FieldName<&TrainingPartOptions::validation_share>(),
                   " cuts the test samples from the training samples)"));
}

absl::Status CheckTrainingPart(const DatasetOptions& options) {
  TROUPE_RETURN_IF_ERROR(CheckShare(options));
  if (!options.part.balance_classes || options.part.sample_weights.empty()) {
    return absl::OkStatus();
  }
  return base::FieldError<&TrainingPartOptions::sample_weights,
                          &TrainingPartOptions::balance_classes>(absl::StrCat(
      base::FieldName<&TrainingPartOptions::sample_weights>(), " and ",
      base::FieldName<&TrainingPartOptions::balance_classes>(),
      " are both set; remove one"));
}

absl::Status CutTrainingPart(
    const DatasetOptions& options, base::FileSystem& files,
    const std::function<absl::StatusOr<DatasetPtr>()>& open_plain,
    DataSplits& splits) {
  if (splits.train == nullptr) return absl::OkStatus();
  const std::int64_t samples = splits.train->size();
  std::vector<std::int64_t> left;
  if (options.part.validation_share > 0) {
    TROUPE_ASSIGN_OR_RETURN(left, HoldShare(options, open_plain, splits));
  } else {
    left.resize(samples);
    std::iota(left.begin(), left.end(), std::int64_t{0});
  }
  if (options.part.trained_on) return absl::OkStatus();
  return Weigh(options, files, samples, left, splits);
}

}  // namespace troupe::data
