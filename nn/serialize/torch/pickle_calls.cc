#include "nn/serialize/torch/pickle_calls.h"

#include <algorithm>
#include <iterator>

namespace troupe::nn {
namespace {

constexpr absl::string_view kDictionaries[] = {
    "collections.OrderedDict", "collections.defaultdict", "builtins.dict",
    "__builtin__.dict"};

constexpr absl::string_view kTensors[] = {
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch._tensor._rebuild_from_type_v2",
};

constexpr absl::string_view kPassedOver[] = {
    "__builtin__.bytearray",
    "__builtin__.complex",
    "__builtin__.frozenset",
    "__builtin__.list",
    "__builtin__.set",
    "__builtin__.slice",
    "__builtin__.tuple",
    "_codecs.encode",
    "argparse.Namespace",
    "builtins.bytearray",
    "builtins.complex",
    "builtins.frozenset",
    "builtins.list",
    "builtins.range",
    "builtins.set",
    "builtins.slice",
    "builtins.tuple",
    "collections.Counter",
    "collections.deque",
    "datetime.date",
    "datetime.datetime",
    "datetime.timedelta",
    "decimal.Decimal",
    "fractions.Fraction",
    "lightning.fabric.utilities.data.AttributeDict",
    "lightning_fabric.utilities.data.AttributeDict",
    "numpy._core.multiarray._reconstruct",
    "numpy._core.multiarray.scalar",
    "numpy.core.multiarray._reconstruct",
    "numpy.core.multiarray.scalar",
    "numpy.dtype",
    "numpy.ndarray",
    "pathlib.Path",
    "pathlib.PosixPath",
    "pathlib.PurePosixPath",
    "pathlib._local.PosixPath",
    "pytorch_lightning.utilities.parsing.AttributeDict",
    "torch.Size",
    "torch.Tensor",
    "torch.device",
    "torch.nn.parameter.Parameter",
    "torch.serialization._get_layout",
    "torch.torch_version.TorchVersion",
    "uuid.UUID",
};

template <std::size_t kCount>
bool Has(const absl::string_view (&names)[kCount], absl::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

PickleCall MeaningOf(absl::string_view name) {
  if (Has(kDictionaries, name)) return PickleCall::kDictionary;
  if (Has(kTensors, name)) return PickleCall::kTensor;
  if (Has(kPassedOver, name)) return PickleCall::kPassedOver;
  return PickleCall::kRefused;
}

}  // namespace troupe::nn
