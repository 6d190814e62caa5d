// What a model is made of, as a table: the tree of its modules with the shape
// that comes out of each, parameters and multiply-adds (torchinfo.summary).
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
// From a shape-only forward: nothing is computed and no tensor has memory, so
// it is made of a model that fits nowhere, too. A parameter that modules share
// counts once, with the first of them. Memory of activations is an estimate
// from above: the output of every op, as if backward kept them all.

#ifndef NN_MODULES_SUMMARY_H_
#define NN_MODULES_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nn/modules/module.h"

namespace troupe::nn {

struct ModelSummary {
  // A module; what stands below it comes after it, one level deeper.
  struct Row {
    int depth = 0;     // 0: the model
    std::string name;  // "0", "layer1"; the model's is empty
    std::string type;  // "Conv2d"
    Shape output;      // of its last op
    bool has_output = false;
    // Its own, not those of the modules below it.
    std::int64_t parameters = 0;
    double mult_adds = 0;
    bool frozen = false;  // has parameters, none of them trained
  };

  std::vector<Row> rows;
  TensorSpec input;
  std::int64_t parameters = 0;  // all, each once
  std::int64_t trained = 0;     // those with a gradient
  std::int64_t buffers = 0;     // elements
  double mult_adds = 0;         // of one forward of `input`
  std::int64_t parameter_bytes = 0;
  std::int64_t gradient_bytes = 0;
  std::int64_t buffer_bytes = 0;
  std::int64_t activation_bytes = 0;

  // The table, of modules down to `depth`: a row has what lies below it, too,
  // where that has no rows.
  std::string Table(int depth) const;
  // All modules, then the totals.
  std::string ToString() const;
};

// Errors as ShapeOnlyForward().
absl::StatusOr<ModelSummary> Summary(Module& model, const TensorSpec& input);

}  // namespace troupe::nn

#endif  // NN_MODULES_SUMMARY_H_
