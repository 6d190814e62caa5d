// The description of a program whose ranks run code of the user's.
//
//   ProgramSpec spec;
//   spec.ranks = 2;
//   spec.body = [](ProgramRank& self) { return Train(self); };

#ifndef ACTORS_PROGRAM_PROGRAM_SPEC_H_
#define ACTORS_PROGRAM_PROGRAM_SPEC_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "actors/program/program_rank.h"
#include "actors/spec/cluster_options.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/device.h"

namespace troupe::actors {

struct ProgramSpec {
  // Function that each rank runs, on its fiber. It may throw; a catch(...) in
  // it must rethrow (base/fibers/fiber.h).
  std::function<absl::Status(ProgramRank& self)> body;
  int ranks = 1;  // number of those in all processes
  // Device on which each rank computes, and of its groups. "cuda" gives each
  // rank of a host a GPU of its own (docs/cuda.md, Choosing a GPU).
  nn::Device device;
  // Order in which the ranks of a group add up: "tree", "any" or "auto", as in
  // a job's plan (pipeline/plan.h). "any" is that of NCCL, which then makes the
  // groups: for GPUs alone.
  std::string reduction_order = "tree";
  // Opens a rank's kernels, which are of a device of that kind. Null: those of
  // `device`, where each kernel may use threads_per_rank threads.
  std::function<absl::StatusOr<std::unique_ptr<nn::Kernels>>()> kernels;
  int threads_per_rank = 1;
  // Limit on one wait for peers.
  absl::Duration timeout = absl::Minutes(5);
  // Limit on the bytes of a model's gradients up to which a rank reduces them
  // itself, between pieces of the backward; more are handed over to its
  // communication strand. Negative: measured, and without limit if no core is
  // free for these strands. It changes no bit.
  std::int64_t inline_bytes = -1;
  // Place of this process among several, and how many of the ranks it has;
  // none: all ranks are in this one.
  std::optional<ClusterOptions> cluster;
};

}  // namespace troupe::actors

#endif  // ACTORS_PROGRAM_PROGRAM_SPEC_H_
