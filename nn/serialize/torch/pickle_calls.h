// The calls that may stand in a pickle which is read as data (pickle.h).
//
//   MeaningOf("collections.OrderedDict");   // PickleCall::kDictionary
//   MeaningOf("argparse.Namespace");        // PickleCall::kPassedOver
//   MeaningOf("posix.system");              // PickleCall::kRefused
//
// No call is ever executed. The list exists so that a file that would run
// something in Python is refused by the name of what it would run, instead of
// being read as if it were harmless. Names are those of PyTorch 2.15
// (torch/_weights_only_unpickler.py) and of what training programs put beside
// a model: arguments of timm, hyper-parameters of Lightning, scalars of NumPy.

#ifndef NN_SERIALIZE_TORCH_PICKLE_CALLS_H_
#define NN_SERIALIZE_TORCH_PICKLE_CALLS_H_

#include "absl/strings/string_view.h"

namespace troupe::nn {

enum class PickleCall {
  kDictionary,  // makes a dictionary
  kTensor,      // rebuilds a tensor (torch_tensors.h)
  kPassedOver,  // makes data in which no weights are looked for
  kRefused,
};

PickleCall MeaningOf(absl::string_view name);

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_TORCH_PICKLE_CALLS_H_
