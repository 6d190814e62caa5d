// Runs the ranks of a program that are in this process, each on a strand in a
// thread of its own (torch.multiprocessing.spawn, without processes). With
// ProgramSpec::cluster the other ranks are in processes that call it, too.
//
//   ProgramSpec spec;
//   spec.ranks = 2;
//   spec.body = [](ProgramRank& self) { return Train(self); };
//   absl::Status status = RunProgram(spec);
//
// The simulator runs the same strands in one thread
// (actors/sim/simulated_program.h).
//
// Errors: the first failure of a rank, with its number, the line of its call,
// and what its peers were calling. kInvalidArgument for a spec that no program
// can have; kResourceExhausted if the system refuses the threads;
// kUnimplemented or kUnavailable if there is no ProgramSpec::device for each
// rank.

#ifndef ACTORS_PROGRAM_RUN_PROGRAM_H_
#define ACTORS_PROGRAM_RUN_PROGRAM_H_

#include "absl/status/status.h"
#include "actors/program/program_spec.h"

namespace troupe::actors {

// Checks the numbers of a spec.
absl::Status CheckProgram(const ProgramSpec& spec);

// Returns when all ranks have ended, those of other processes as well.
absl::Status RunProgram(const ProgramSpec& spec);

}  // namespace troupe::actors

#endif  // ACTORS_PROGRAM_RUN_PROGRAM_H_
