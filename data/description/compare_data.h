// Compares the description of a job's data (describe_data.h) with the one that
// a checkpoint has.
//
//   CompareData({{"kind", "glyphs"}}, {{"kind", "mnist"}});
//   // the data were of kind glyphs, this job's are of mnist; go on with ...
//
// Nothing is compared with an empty description. Nor are "classes" and a hash
// ("content", "vocabulary") with a side that lacks them: earlier versions save
// none, and files that are not read have none.

#ifndef DATA_DESCRIPTION_COMPARE_DATA_H_
#define DATA_DESCRIPTION_COMPARE_DATA_H_

#include <map>
#include <string>

#include "absl/status/status.h"

namespace troupe::data {

// Entries of the description that have the hashes of the training samples, and
// of their weights.
inline constexpr char kContentEntry[] = "content";
inline constexpr char kWeightsEntry[] = "weights";

// For a job that goes on with training.
//   kInvalidArgument: an entry differs; names the first one, and both values.
absl::Status CompareData(const std::map<std::string, std::string>& saved,
                         const std::map<std::string, std::string>& now);
// For a job that only evaluates, whose samples are not weighed. Errors: the
// same.
absl::Status CompareTestData(std::map<std::string, std::string> saved,
                             const std::map<std::string, std::string>& now);

}  // namespace troupe::data

#endif  // DATA_DESCRIPTION_COMPARE_DATA_H_
