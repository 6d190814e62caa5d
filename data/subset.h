// Some samples of another dataset, under new numbers.
//
//   TROUPE_ASSIGN_OR_RETURN(DatasetPtr few, MakeSubset(train, {5, 7, 7}));
//   TROUPE_ASSIGN_OR_RETURN(DatasetPtr head, MakeSubset(train, 0, 1000));
//
// Sample i of the subset is sample indices[i] (or begin + i) of the dataset,
// and random transforms of the dataset draw by that number.

#ifndef DATA_SUBSET_H_
#define DATA_SUBSET_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"

namespace troupe::data {

// kOutOfRange: an index is not a sample of `dataset`.
absl::StatusOr<DatasetPtr> MakeSubset(DatasetPtr dataset,
                                      std::vector<std::int64_t> indices);
// Samples [begin, end).
absl::StatusOr<DatasetPtr> MakeSubset(DatasetPtr dataset, std::int64_t begin,
                                      std::int64_t end);

}  // namespace troupe::data

#endif  // DATA_SUBSET_H_
