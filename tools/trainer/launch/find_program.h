// Finds the file of a program that a user named, as a shell does.
//
//   FindProgram("./mine", "/usr/bin:/bin");   // "./mine"
//   FindProgram("python3", "/usr/bin:/bin");  // "/usr/bin/python3"

#ifndef TOOLS_TRAINER_LAUNCH_FIND_PROGRAM_H_
#define TOOLS_TRAINER_LAUNCH_FIND_PROGRAM_H_

#include <string>

#include "absl/status/statusor.h"

namespace troupe::tools {

// Returns the path of the executable file `name`. A name without a slash is
// looked up in the folders of `search_path`, which are separated by colons.
//   kInvalidArgument: there is no such file, or it may not be executed; names
//     --program.
absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        const std::string& search_path);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_LAUNCH_FIND_PROGRAM_H_
