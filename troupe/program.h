// Runs a program of one's own on many ranks: torch.multiprocessing.spawn and
// init_process_group in one call.
//
//   void Run(Rank& rank) {
//     Var x = rank.Full({1}, rank.number());
//     AllReduce(x);
//     rank.Print("the sum is %g\n", x.item());
//   }
//   return ExitCode(Spawn(Run, /*ranks=*/4));       // in main()
//
// Each rank runs the function in a thread of its own. It may not use another
// rank's Rank, groups or tensors. Main() starts the same program under any
// launcher, in many processes.
//
// The program starts itself again if SpawnOptions::processes is above 1, so
// many times, and the ranks are spread over these processes:
//
//   SpawnOptions options;
//   options.ranks = 4;
//   options.processes = 2;
//   return ExitCode(Spawn(Run, options));
//
// Each of them runs main(), with the same arguments, up to the same call, joins
// there, and ends with its ranks: what stands before the call runs in all
// processes, what stands behind it in the first alone. What ranks write to
// variables of the program remains in their process. Calls after the first
// begin anew, and pass the earlier ones in the processes that they start.
// actors/launchers/self_launch.h says more, also about signals.
//
// Ranks may compute on GPUs; their groups are then those of a job with the same
// reduction order: "tree" has the same bits wherever ranks live, "any" is
// NCCL's (torch.distributed's backend="nccl"), and faster:
//
//   SpawnOptions options;
//   options.ranks = 2;
//   options.device = *nn::Device::Parse("cuda");    // a GPU for each rank
//   options.reduction_order = "any";
//   return ExitCode(Spawn(Run, options));
//
// One rank may have several devices, on which DataParallel divides its batches
// (troupe/data_parallel.h); the program runs on the first of them:
//
//   SpawnOptions options;
//   options.devices = 4;
//   return ExitCode(Spawn(Run, options));
//
// The simulator runs the same program in one thread (troupe/simulate.h).
//
// Errors: the program reports one by a base::StatusError (or any other
// exception), which ends its rank and all peers. What comes out is the first
// failure, with its rank, its call and line, and the calls that its peers were
// in. kInvalidArgument for options that no program can have, such as NCCL's
// order on the CPU or in a build without NCCL; kUnimplemented for a device that
// this build has no kernels for, kUnavailable for one that this machine does
// not have for each rank.

#ifndef TROUPE_PROGRAM_H_
#define TROUPE_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "actors/program/program_spec.h"
#include "actors/spec/cluster_options.h"
#include "base/status_error.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/device.h"
#include "pipeline/mesh.h"
#include "troupe/rank.h"

namespace troupe {

using base::StatusError;
using base::Try;

// Function that each rank runs.
using Program = std::function<void(Rank& rank)>;

struct SpawnOptions {
  int ranks = 1;  // number of those in all processes
  // Number of devices of the rank, for DataParallel; above 1: there is one
  // rank, in one process.
  int devices = 1;
  // Number of processes; 1: this one. Main() under a launcher takes those of
  // the launcher instead; the simulator has one.
  int processes = 1;
  // Seed of initial values and random tensors.
  std::uint64_t seed = 0;
  // Limit on one wait for peers.
  absl::Duration timeout = absl::Minutes(5);
  // Number of threads that one kernel of a rank may use. It can change bits.
  int threads_per_rank = 1;
  // Bytes of a model's gradients up to which a rank reduces them itself,
  // between pieces of the backward, and does not hand them to its communication
  // strand. Negative: measured. It changes no bit.
  std::int64_t inline_bytes = -1;
  // Layout of the ranks, for Rank::Axis(). None: all along dp.
  std::optional<pipeline::Mesh> mesh = {};
  // Device on which each rank computes: "cpu", "reference", or "cuda", by which
  // each rank of a host has a GPU of its own; "cuda:0" puts all ranks on one.
  nn::Device device = {};
  // Order in which groups of GPUs add up, and so who makes them: "tree", the
  // order of the CPU; "any", that of NCCL, within a process and over several;
  // "auto", which is "any" where ranks have GPUs of their own and the program
  // has NCCL. With NCCL all ranks make groups, and use them, in one order, and
  // bits depend on the GPUs (docs/cuda.md, Sums over ranks).
  std::string reduction_order = "tree";
  // Opens a rank's kernels, which are of a device of that kind. Null: those of
  // `device`.
  std::function<absl::StatusOr<std::unique_ptr<nn::Kernels>>()> kernels = {};
  // Place of this process among several, which all call Spawn(); none: all
  // ranks are in this one. Main() sets it.
  std::optional<actors::ClusterOptions> cluster = {};
};

absl::Status Spawn(const Program& program, const SpawnOptions& options);
absl::Status Spawn(const Program& program, int ranks);
// Anything else is a compile error that says what to write.
template <typename F, typename Ranks,
          std::enable_if_t<!std::is_convertible_v<F, Program>, int> = 0>
absl::Status Spawn(F&&, Ranks&&) {
  static_assert(std::is_convertible_v<F, Program>,
                "a program is a function of a rank: void Run(troupe::Rank& "
                "rank); and comes before the number of ranks: Spawn(Run, "
                "/*ranks=*/2)");
  return absl::OkStatus();
}

// Returns the program as the actors take it, for Spawn() and the simulator.
//   kInvalidArgument: names the option.
absl::StatusOr<actors::ProgramSpec> ProgramSpecOf(const Program& program,
                                                  const SpawnOptions& options);

// Runs the program as the environment says (actors/launchers): by torchrun,
// Slurm, Open MPI or `trainer launch --program=PATH` the ranks are spread over
// the processes; otherwise it is as Spawn(). options.ranks is the number of
// all; 0: one for each process. Returns the value of main().
int Main(const Program& program, SpawnOptions options);

// Returns 0, or 1 after it has written the error to standard error: the value
// of main().
int ExitCode(const absl::Status& status);

}  // namespace troupe

#endif  // TROUPE_PROGRAM_H_
