// The tensors that a job saves and loads, by name, and how a checkpoint differs
// from them: the strict load of PyTorch's load_state_dict().
//
//   StateDictSpec wanted;
//   wanted.model["0.weight"] = {{10, 84}, nn::DType::kF32};
//   const IncompatibleKeys keys = FindIncompatibleKeys(checkpoint, wanted);
//   keys.missing;       // {"0.weight"}: the checkpoint has no such tensor
//   keys.unexpected;    // {"0.bias"}: the job has no use for it
//   keys.mismatched;    // {"0.weight is f32[10, 64], not f32[10, 84]"}
//
// A StateDictSpec describes the whole model: each stage of a pipeline reads its
// own tensors, and only all stages together show which tensors none reads.

#ifndef ACTORS_CHECKPOINT_STATE_DICT_H_
#define ACTORS_CHECKPOINT_STATE_DICT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "actors/checkpoint/checkpoint.h"
#include "nn/modules/module.h"

namespace troupe::actors {

// Returns the name under which the checkpoint has a parameter: its own or, if
// the checkpoint lacks that, another name of a parameter that modules share.
// The parameter's own if the checkpoint has none of them.
const std::string& SavedName(const Checkpoint& checkpoint,
                             const nn::Parameter& parameter);

// Returns the dtype in which the checkpoint may have a buffer: f32 for one of
// f64 if it has that, since earlier versions kept the running statistics of f64
// models in f32; else the buffer's own.
nn::DType SavedDType(const Checkpoint& checkpoint, const nn::Buffer& buffer);

// Fills `into`, in host memory, with a tensor of the model, widened if it has
// such a dtype. Errors: the same as Checkpoint::ReadModel(), or of `host`.
absl::Status ReadModelTensor(const Checkpoint& checkpoint,
                             const std::string& name, const nn::Tensor& into,
                             nn::Allocator& host);

struct StateDictSpec {
  std::map<std::string, nn::TensorSpec> model;  // parameters and buffers
  std::map<std::string, nn::TensorSpec> optimizer;
  // Further tensors of the optimizer, which are neither missing nor unexpected.
  std::map<std::string, nn::TensorSpec> optional = {};
};

// Each list has the model's keys first, then the optimizer's, sorted.
struct IncompatibleKeys {
  std::vector<std::string> missing;     // in the job, not in the checkpoint
  std::vector<std::string> unexpected;  // in the checkpoint, not in the job
  std::vector<std::string> mismatched;  // other shape or dtype; as sentences
};

IncompatibleKeys FindIncompatibleKeys(const Checkpoint& checkpoint,
                                      const StateDictSpec& wanted);

// Returns "0.bias, 2.bias" for a message; after 32 keys, "and 7 more".
std::string ListKeys(absl::Span<const std::string> keys);

}  // namespace troupe::actors

#endif  // ACTORS_CHECKPOINT_STATE_DICT_H_
