// Two deep models made narrow, to be cut into many stages: jobs of two steps
// that a simulation runs in milliseconds.
//
//   DeepModel gpt = SmallGpt();
//   JobSpec spec = gpt.Job(Mesh(/*dp=*/2, /*pp=*/4), /*micro_batches=*/8);
//   spec.plan.cuts = *gpt.Cuts(/*stages=*/4);
//
// The GPT has 8 layers, 8 wide; each half of a layer, attention or MLP, is a
// module, so that there are places for 16 stages and more. ResNet-18 is that of
// nn/models/resnet.h on images of 8x8, 4 channels wide; batch norm, and parts
// without parameters.

#ifndef TESTS_ACTORS_SIM_DEEP_MODELS_H_
#define TESTS_ACTORS_SIM_DEEP_MODELS_H_

#include <optional>
#include <string>
#include <vector>

#include "actors/spec/job_spec.h"
#include "pipeline/mesh.h"
#include "pipeline/partition.h"

namespace troupe::actors {

struct DeepModel {
  std::string name;
  JobSpec job;                      // without mesh, cuts and batch sizes
  std::vector<pipeline::Cut> ways;  // all possible cuts

  // Returns the job with two samples a micro-batch.
  JobSpec Job(const pipeline::Mesh& mesh, int micro_batches) const;
  // Returns even cuts; nothing if the model cannot be cut into that many
  // stages.
  std::optional<std::vector<pipeline::Cut>> Cuts(int stages) const;
};

// `tie_head`: the head's weight is that of the embedding.
DeepModel SmallGpt(bool tie_head = false);
DeepModel SmallResNet18();

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_SIM_DEEP_MODELS_H_
