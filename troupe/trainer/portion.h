// The batches, and the samples, that an option of a Trainer lets through.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       std::int64_t batches,
//       BatchesOf<&TrainerOptions::limit_val_batches>(options, /*all=*/20));
//   // 5 for 5 or 0.25, 20 for 30 or 1.0
//   TROUPE_ASSIGN_OR_RETURN(data::DatasetPtr first,
//                           FirstBatches<&TrainerOptions::limit_val_batches>(
//                               options, val, /*batch=*/64));

#ifndef TROUPE_TRAINER_PORTION_H_
#define TROUPE_TRAINER_PORTION_H_

#include <algorithm>
#include <cstdint>
#include <variant>

#include "absl/status/statusor.h"
#include "base/check.h"
#include "data/dataset.h"
#include "data/subset.h"
#include "troupe/trainer/option_error.h"
#include "troupe/trainer_options.h"

namespace troupe {

// Returns the number of batches that a portion of `all` is.
//   kInvalidArgument: it is no number from 0 on, and no fraction from 0.0 to
//     1.0; names the option.
template <auto kField>
absl::StatusOr<std::int64_t> BatchesOf(const TrainerOptions& options,
                                       std::int64_t all) {
  const Portion& portion = options.*kField;
  if (const auto* count = std::get_if<std::int64_t>(&portion)) {
    if (*count >= 0) return std::min(*count, all);
  } else if (const double fraction = std::get<double>(portion);
             fraction >= 0 && fraction <= 1) {
    return static_cast<std::int64_t>(static_cast<double>(all) * fraction);
  }
  return RefuseOption<kField>(
      options,
      ": give a number of batches, or a fraction from 0.0 "
      "to 1.0");
}

// Returns the first samples of the data: as many as are in the batches that the
// option lets through. `batch`: samples of a batch on all replicas.
//   kInvalidArgument: that of BatchesOf().
template <auto kField>
absl::StatusOr<data::DatasetPtr> FirstBatches(const TrainerOptions& options,
                                              const data::DatasetPtr& dataset,
                                              std::int64_t batch) {
  if (options.*kField == Portion(1.0)) return dataset;
  TROUPE_ASSIGN_OR_RETURN(
      const std::int64_t batches,
      BatchesOf<kField>(options, (dataset->size() + batch - 1) / batch));
  return data::MakeSubset(dataset, 0,
                          std::min(batches * batch, dataset->size()));
}

}  // namespace troupe

#endif  // TROUPE_TRAINER_PORTION_H_
