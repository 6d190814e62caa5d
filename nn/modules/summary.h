// Summary of a model as a table: the tree of its modules with the output shape
// of each, parameters and multiply-adds (torchinfo.summary).
//
//   TROUPE_ASSIGN_OR_RETURN(
//       const ModelSummary summary,
//       Summary(*model, /*input=*/{{1, 28, 28, 1}, DType::kF32}));
//   std::cout << summary.ToString();
//
// prints
//
//     Layer                Output shape      Parameters   Mult-adds
//     =============================================================
//     Sequential           [1, 10]                   --          --
//     ├─ 0 (Conv2d)        [1, 24, 24, 6]           156      86,400
//     ├─ 1 (ReLU)          [1, 24, 24, 6]            --       1,728
//     ...
//
// It comes from a shape-only forward: nothing is computed and no tensor has
// memory, so it also works for a model too large for any machine. A parameter
// that modules share counts once, with the first of them. Memory of activations
// is an upper estimate: the output of every op, as if backward kept them all.

#ifndef NN_MODULES_SUMMARY_H_
#define NN_MODULES_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nn/modules/module.h"

namespace troupe::nn {

struct ModelSummary {
  // A module; the modules below it follow, one level deeper.
  struct Row {
    int depth = 0;     // 0 for the model itself
    std::string name;  // "0", "layer1"; empty for the model
    std::string type;  // "Conv2d"
    Shape output;      // output of its last op
    bool has_output = false;
    // Counts of this module, without those of the modules below it.
    std::int64_t parameters = 0;
    double mult_adds = 0;
    bool frozen = false;  // has parameters, none of them trained
  };

  std::vector<Row> rows;
  TensorSpec input;
  std::int64_t parameters = 0;  // elements; each counted once
  std::int64_t trained = 0;     // elements with a gradient
  std::int64_t buffers = 0;     // elements
  double mult_adds = 0;         // for one forward of `input`
  std::int64_t parameter_bytes = 0;
  std::int64_t gradient_bytes = 0;
  std::int64_t buffer_bytes = 0;
  std::int64_t activation_bytes = 0;

  // Returns the table of modules down to `depth`; the rows at `depth` include
  // the counts of the modules below.
  std::string Table(int depth) const;
  // Returns the table of all modules, then the totals.
  std::string ToString() const;
};

// Errors: the same as ShapeOnlyForward().
absl::StatusOr<ModelSummary> Summary(Module& model, const TensorSpec& input);

}  // namespace troupe::nn

#endif  // NN_MODULES_SUMMARY_H_
