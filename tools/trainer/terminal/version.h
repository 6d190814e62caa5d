// The version of Troupe, from the file VERSION in the root.
//
//   std::cout << "trainer " << Version() << "\n";   // trainer 0.1.0

#ifndef TOOLS_TRAINER_TERMINAL_VERSION_H_
#define TOOLS_TRAINER_TERMINAL_VERSION_H_

namespace troupe::tools {

const char* Version();

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_TERMINAL_VERSION_H_
