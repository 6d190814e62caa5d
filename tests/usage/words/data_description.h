// Declares names that the usage comments in data/description/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_DATA_DESCRIPTION_H_
#define TESTS_USAGE_WORDS_DATA_DESCRIPTION_H_

#include <map>
#include <string>

#include "data/registry.h"

namespace troupe::data::usage {

extern const DatasetOptions options;
extern const DataSplits splits;

namespace class_names_h {
extern std::map<std::string, std::string> data;
}

namespace compare_data_h {}

namespace describe_data_h {
struct Spec {
  std::map<std::string, std::string> data;
};
extern Spec spec;
}  // namespace describe_data_h

}  // namespace troupe::data::usage

#endif  // TESTS_USAGE_WORDS_DATA_DESCRIPTION_H_
