// The program `trainer` without main() and the devices that it is linked with:
// arguments, real files, terminal and signals.
//
//   int main(int argc, char** argv) {
//     return troupe::tools::TrainerMain(argc, argv);
//   }

#ifndef TOOLS_TRAINER_TRAINER_MAIN_H_
#define TOOLS_TRAINER_TRAINER_MAIN_H_

namespace troupe::tools {

// Runs the program and returns its exit code (exit_codes.h). Call it once in a
// process, in its first thread. Ends the process itself after a failure
// (kExitFailed), since threads of the job may still run.
int TrainerMain(int argc, char** argv);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_TRAINER_MAIN_H_
