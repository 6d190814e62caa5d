// Golden files of text lines "name: value", for tests that compare what they
// computed with what an earlier version computed.
//
//   ExpectGoldenLine("tests/golden/job_bits.txt", "lenet plain", "4002626f");
//
// If the environment variable TROUPE_REWRITE is set, it holds the path of a
// golden file, and these functions write to that file instead of comparing.
// Lines that begin with '#' are comments and stay at the top of the file; the
// other lines are sorted by name.
//
// Threads: one. Cost: each call reads the whole file.

#ifndef TESTS_ACTORS_JOBS_BITS_GOLDEN_LINES_H_
#define TESTS_ACTORS_JOBS_BITS_GOLDEN_LINES_H_

#include <set>
#include <string>

namespace troupe {

// Returns whether golden files are written instead of compared.
bool RewritesGoldenLines();

// Expects the golden file `path` to have the line "`name`: `value`". Returns
// whether it has.
bool ExpectGoldenLine(const std::string& path, const std::string& name,
                      const std::string& value);

// Expects the name of each line of the golden file `path` to be in `names`: a
// line whose case was renamed or removed is an error. A rewrite removes such
// lines.
void ExpectNoOtherGoldenLines(const std::string& path,
                              const std::set<std::string>& names);

// Returns the name of a line with what GoogleTest takes in names of cases:
// "lenet_dp_2" for "lenet dp=2".
std::string TestNameOf(std::string line_name);

}  // namespace troupe

#endif  // TESTS_ACTORS_JOBS_BITS_GOLDEN_LINES_H_
