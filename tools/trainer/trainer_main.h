// The program `trainer`, but for its name and the devices that it is linked
// with: arguments, real files, terminal and signals.
//
//   int main(int argc, char** argv) {
//     return troupe::tools::TrainerMain(argc, argv);
//   }

#ifndef TOOLS_TRAINER_TRAINER_MAIN_H_
#define TOOLS_TRAINER_TRAINER_MAIN_H_

namespace troupe::tools {

// The exit code (exit_codes.h). Once in a process, in its first thread; a run
// that has failed ends the process itself.
int TrainerMain(int argc, char** argv);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_TRAINER_MAIN_H_
