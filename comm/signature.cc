#include "comm/signature.h"

namespace troupe::comm::internal {

Collective Unpack(std::uint64_t signature) {
  Collective collective;
  collective.kind = KindOf(signature);
  if (!RuleOf(collective.kind).moves_data()) return collective;
  collective.op = OpOf(signature);
  collective.root = RootOf(signature);
  if (ByCounts(signature)) collective.send_counts = {0};
  collective.input = collective.range =
      nn::Tensor::Meta({CountOf(signature)}, DTypeOf(signature), nn::Device());
  return collective;
}

}  // namespace troupe::comm::internal
