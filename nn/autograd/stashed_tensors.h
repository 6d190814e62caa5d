// Tensors that a module has stashed for a later one: skip connections that the
// modules in between do not see, like the skippable modules of torchgpipe (Kim
// et al. 2020, arXiv:2004.09910, sec. 3.3).
//
//   StashedTensors stashed;
//   status = stashed.Add("skip1", /*module=*/"encoder.0", x);
//   Send(stashed.waiting());                  // what a later stage may take
//   absl::StatusOr<Tensor> skipped = stashed.Take("skip1", "decoder.0");
//
// A context has one: modules call Context::Stash() and Context::Pop(), or are
// those of nn/modules/skip.h. If a model is cut into stages, the tensors that
// wait at the end of one stage are moved to the beginning of the next.
//
// A name is used once in a model: so it identifies the tensor wherever the
// model is cut.
//
// Errors: kInvalidArgument with the name, and the module that used it first.
// Threads: one at a time.

#ifndef NN_AUTOGRAD_STASHED_TENSORS_H_
#define NN_AUTOGRAD_STASHED_TENSORS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

struct StashedTensor {
  std::string name;
  std::string module;  // path of the module that stashed it
  Tensor tensor;
};

class StashedTensors {
 public:
  absl::Status Add(absl::string_view name, absl::string_view module,
                   const Tensor& tensor);
  absl::StatusOr<Tensor> Take(absl::string_view name, absl::string_view module);

  // Tensors that no module has taken yet, in the order of their stashing.
  const std::vector<StashedTensor>& waiting() const { return waiting_; }
  bool IsWaiting(absl::string_view name) const;
  // Returns an error at the end of a model for the first tensor that still
  // waits.
  absl::Status CheckAllTaken() const;

 private:
  std::vector<StashedTensor> waiting_;
  std::map<std::string, std::string> taken_by_;  // module, by name
};

}  // namespace troupe::nn

#endif  // NN_AUTOGRAD_STASHED_TENSORS_H_
