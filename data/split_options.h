// Options for splitting samples into a training and a test part, if the files
// are not split already.
//
//   SplitOptions split;
//   split.val_fraction = 0.05;               // the last 5 % of a text

#ifndef DATA_SPLIT_OPTIONS_H_
#define DATA_SPLIT_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::data {

struct SplitOptions {
  double val_fraction = 0.1;  // [0, 1); 0: no test part
  std::uint64_t seed = 0;     // seed of random choices
  // Set: TrainingPartOptions::trained_on, where the test part does not need the
  // training samples.
  std::optional<std::string> trained_on = {};
};

}  // namespace troupe::data

#endif  // DATA_SPLIT_OPTIONS_H_
