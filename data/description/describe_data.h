// The description of a job's samples that checkpoints keep, so that a job is
// not resumed with others (SamplerOptions::data).
//
//   spec.data = DescribeData(options, splits);
//   // {"kind": "glyphs", "normalize": "true", "seed": "0"}

#ifndef DATA_DESCRIPTION_DESCRIBE_DATA_H_
#define DATA_DESCRIPTION_DESCRIBE_DATA_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "data/registry.h"

namespace troupe::data {

// Returns a description that distinguishes these samples from others. It leaves
// out the path, since it may change, and the numbers of samples, which the
// sampler's state has.
std::map<std::string, std::string> DescribeData(const DatasetOptions& options);
// Adds what only the files tell: "content", DataSplits::content; "vocabulary",
// a hash of what token numbers stand for; "classes", the names of the classes.
std::map<std::string, std::string> DescribeData(const DatasetOptions& options,
                                                const DataSplits& splits);

}  // namespace troupe::data

#endif  // DATA_DESCRIPTION_DESCRIBE_DATA_H_
