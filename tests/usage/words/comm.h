// Declares names that the usage comments in comm/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_COMM_H_
#define TESTS_USAGE_WORDS_COMM_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "comm/communicator.h"
#include "comm/fabric.h"
#include "comm/link.h"
#include "comm/local/local_group.h"
#include "comm/mailbox.h"
#include "comm/reduction/reduce_op.h"
#include "comm/replica_update.h"
#include "comm/store.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm::usage {

extern const int rank;
extern const nn::Tensor gradients;
extern Communicator& comm;
extern const absl::Duration timeout;

namespace flow_h {
extern const Collective reduce_scatter_of_rank_0;
}

namespace fabric_h {
extern std::vector<std::unique_ptr<Link>> links;
}

namespace fabric_store_h {
extern const std::shared_ptr<Fabric> fabric;
}

namespace link_h {
extern Link& link;
extern const Frame frame;
extern const char* const payload;
void Print(int peer, int type, absl::string_view payload);
void Show(const absl::Status& why);
}  // namespace link_h

namespace farewell_h {
extern const Frame frame;
extern const char* const payload;
}  // namespace farewell_h

namespace store_h {
extern Store& store;
}

namespace reduction_tree_h {
extern float *a, *b, *c;
}

}  // namespace troupe::comm::usage

namespace troupe::comm::internal::usage {

extern const Receive receive;
extern const Offer offer;

namespace pending_messages_h {
extern const Receive receive;
extern const Offer offer;
}  // namespace pending_messages_h

namespace apply_update_h {
extern ReplicaUpdate &mine, &theirs;
extern const nn::Tensor sum;
}  // namespace apply_update_h

namespace signature_h {
extern const nn::Tensor range;
extern const std::uint64_t theirs;
template <typename Signature>
void Complain(const Signature& mine, const Signature& theirs);
}  // namespace signature_h

namespace reduction_kernels_h {
extern const ReduceOp op;
extern const nn::DType dtype;
extern const char* const* sources;
extern char* const* destinations;
extern const int n, m, ranks;
extern const std::int64_t count;
}  // namespace reduction_kernels_h

}  // namespace troupe::comm::internal::usage

#endif  // TESTS_USAGE_WORDS_COMM_H_
