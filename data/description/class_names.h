// The names of classes in a checkpoint's description of the data, compared by
// name.
//
//   data["classes"] = ClassNames({"cat", "dog"});          // "cat/dog"
//   NamesOfClasses(data["classes"]);                       // "cat", "dog"
//   CompareClasses("cat/dog", "cat/hound");
//   // class 1 was "dog" and is "hound"; rename the folders back, or start anew
//
// A name is that of a folder, which has no "/". Names of more than
// kClassNamesBytesMax bytes are a hash of them.

#ifndef DATA_DESCRIPTION_CLASS_NAMES_H_
#define DATA_DESCRIPTION_CLASS_NAMES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace troupe::data {

// Entry of the description that has the names.
inline constexpr char kClassesEntry[] = "classes";
inline constexpr std::size_t kClassNamesBytesMax = 1 << 20;

std::string ClassNames(const std::vector<std::string>& classes);
// Returns the names of which `saved` is made; none if it is a hash.
std::vector<std::string> NamesOfClasses(const std::string& saved);

//   kInvalidArgument: the names differ; names the first that does.
absl::Status CompareClasses(const std::string& saved, const std::string& now);

}  // namespace troupe::data

#endif  // DATA_DESCRIPTION_CLASS_NAMES_H_
