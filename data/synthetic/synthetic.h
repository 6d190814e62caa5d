// Random data of any size, for benchmarks and for tests of training.
//
//   SyntheticOptions options;
//   options.input_shape = {10};
//   options.num_classes = 0;                  // regression
//   options.target_dim = 2;
//   TROUPE_ASSIGN_OR_RETURN(DatasetPtr d,
//                           MakeSyntheticDataset(options, "train"));
//
// Inputs are standard normal. Targets follow from them through a fixed random
// linear map of (at most) the first 64 inputs, drawn from the seed: scaled to
// variance one for regression, the largest of num_classes scores for
// classification. So a linear model can learn them, and any split agrees.

#ifndef DATA_SYNTHETIC_SYNTHETIC_H_
#define DATA_SYNTHETIC_SYNTHETIC_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/dataset.h"

namespace troupe::data {

struct SyntheticOptions {
  std::int64_t count = 1024;
  nn::Shape input_shape = {10};
  std::int64_t num_classes = 10;  // 0: regression
  std::int64_t target_dim = 1;    // length of regression targets
  std::uint64_t seed = 0;
};

// Sample i of `split` is a function of (seed, split, i) alone.
//   kInvalidArgument: no sample, no input, a negative number, or more than
//                     kSyntheticBytesMax of inputs, targets and linear map.
constexpr std::int64_t kSyntheticBytesMax = std::int64_t{8} << 30;
absl::StatusOr<DatasetPtr> MakeSyntheticDataset(const SyntheticOptions& options,
                                                absl::string_view split);

}  // namespace troupe::data

#endif  // DATA_SYNTHETIC_SYNTHETIC_H_
