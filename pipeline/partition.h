// Cuts a model into stages: the contiguous parts that a pipeline's ranks hold.
//
//   // From child 3 on, and from child 4 of the Sequential "features" on.
//   TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> begins,
//                           ResolveCuts(factory, {3, "features.4"}));
//   begins;                                         // {"3", "features.4"}
//   auto last = BuildStage(factory, begins, /*stage=*/2);
//
// Cuts are between children of a Sequential, or of one nested in Sequentials
// alone; without cuts the model may be any Module. Parameters keep their names.
// If modules of several stages share a parameter (Module::TieParameter), each
// stage has a copy under the name in the whole model (pipeline/ties.h).
//
// Ranks along tp have pieces of the layers that declare a cut
// (nn/autograd/sharding.h). Shapes of stages are the same for all of them.

#ifndef PIPELINE_PARTITION_H_
#define PIPELINE_PARTITION_H_

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/autograd/sharding.h"
#include "nn/modules/module.h"
#include "pipeline/mesh.h"

namespace troupe::pipeline {

// The module with which a stage begins: a child of the model by its number,
// counted from 0, or any module by its path, as in names of parameters. Numbers
// and texts convert to cuts: {3, "features.4"} is a list of two.
struct Cut {
  Cut(int child) : at(child) {}
  Cut(std::string path) : at(std::move(path)) {}
  Cut(const char* path) : at(std::string(path)) {}

  // `3` or `"features.4"`
  std::string ToString() const;
  friend bool operator==(const Cut& a, const Cut& b) { return a.at == b.at; }

  std::variant<int, std::string> at;
};

// Returns the paths of the modules with which the stages after the first begin.
// Cuts at the same place give the same path: "features" for the number of that
// child, for "features" and for its first child, "features.0".
//   kInvalidArgument: a module does not exist; a module on its path is no
//     Sequential; cuts do not ascend; the model is no Sequential.
absl::StatusOr<std::vector<std::string>> ResolveCuts(
    const nn::ModelFactory& factory, absl::Span<const Cut> cuts);

// Returns the place of a rank along tp; none if tp and `depth_blocks` are 1.
// `sequence_parallel`, `depth_blocks`: those of the plan.
std::vector<nn::AxisPlace> PlacesOf(const Mesh& mesh, int rank,
                                    bool sequence_parallel, int depth_blocks);

// Makes the model and keeps stage `stage` of `begins.size() + 1`. `begins`: the
// result of ResolveCuts() for this model. `places`: of the rank, whose pieces
// it has; empty: whole layers. Errors: those of ResolveCuts(), and of
// nn::LocaliseModel().
absl::StatusOr<std::unique_ptr<nn::Module>> BuildStage(
    const nn::ModelFactory& factory, absl::Span<const std::string> begins,
    int stage, absl::Span<const nn::AxisPlace> places = {});

}  // namespace troupe::pipeline

#endif  // PIPELINE_PARTITION_H_
