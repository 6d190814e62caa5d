// The training samples as the options change them: a share is cut from them to
// test with, and samples are weighted. OpenDataset() does both.
//
//   absl::Status s = CutTrainingPart(options, files, open_plain, splits);
//   splits.test;      // the share, if options.validation_share > 0
//   splits.weights;   // of the samples in splits.train
//
// The share is a pure function of number, share and seed: every rank and every
// run has the same.

#ifndef DATA_TRAINING_PART_H_
#define DATA_TRAINING_PART_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/file_system.h"
#include "data/dataset.h"
#include "data/registry.h"

namespace troupe::data {

// Returns whether training samples are read, if only to cut test samples from
// them.
bool ReadsTraining(const DatasetOptions& options);
// Adds to the error of a file that is read only for the test samples, why it
// is.
absl::Status WithReasonToRead(const DatasetOptions& options,
                              const absl::Status& status);

// Checks what needs no file. Errors blame the field (base/field_error.h).
absl::Status CheckTrainingPart(const DatasetOptions& options);

// Replaces parts of `splits` by what the options ask for; without training
// samples, none. Those that are read for their test part alone
// (TrainingPartOptions::trained_on) are not weighed. `open_plain` opens
// the training samples without augmentation, which the share is taken from.
//   kInvalidArgument: a part would be empty; those of the weights.
//   other:            from the files.
absl::Status CutTrainingPart(
    const DatasetOptions& options, base::FileSystem& files,
    const std::function<absl::StatusOr<DatasetPtr>()>& open_plain,
    DataSplits& splits);

}  // namespace troupe::data

#endif  // DATA_TRAINING_PART_H_
