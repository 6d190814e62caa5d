// Finds, for names that a file lacks, the names in it that are most like them.
//
//   NearestNames({"head.weight"}, {"heads.weight", "x.bias"});
//   // {"head.weight may be heads.weight"}

#ifndef NN_SERIALIZE_NEAREST_NAMES_H_
#define NN_SERIALIZE_NEAREST_NAMES_H_

#include <string>
#include <vector>

namespace troupe::nn {

// Returns a sentence for each of the first names of `missing` that is like one
// of `unexpected`: the same last word, and at most half of the letters differ
// (Levenshtein distance). Names are compared without wrappers. Cost: limited,
// whatever the numbers of names.
std::vector<std::string> NearestNames(
    const std::vector<std::string>& missing,
    const std::vector<std::string>& unexpected);

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_NEAREST_NAMES_H_
