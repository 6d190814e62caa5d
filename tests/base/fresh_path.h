// Where a test writes what it writes: a path below gtest's temporary folder
// that is the running test's own, with nothing there yet.
//
//   const std::string root = base::FreshPath();   // .../TestName
//   files.CreateFolder(root);

#ifndef TESTS_BASE_FRESH_PATH_H_
#define TESTS_BASE_FRESH_PATH_H_

#include <string>

namespace troupe::base {

// What an earlier run left there is removed. Fails the test where that fails.
std::string FreshPath();

}  // namespace troupe::base

#endif  // TESTS_BASE_FRESH_PATH_H_
