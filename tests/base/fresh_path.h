// Returns a path for the files of the running test: below gtest's temporary
// folder, named after the test, and not existing yet.
//
//   const std::string root = base::FreshPath();   // .../TestName
//   files.CreateFolder(root);

#ifndef TESTS_BASE_FRESH_PATH_H_
#define TESTS_BASE_FRESH_PATH_H_

#include <string>

namespace troupe::base {

// Removes what an earlier run left at the path. Fails the test if it cannot.
std::string FreshPath();

}  // namespace troupe::base

#endif  // TESTS_BASE_FRESH_PATH_H_
