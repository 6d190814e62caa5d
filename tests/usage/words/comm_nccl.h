// Declares names that the usage comments in comm/nccl/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_COMM_NCCL_H_
#define TESTS_USAGE_WORDS_COMM_NCCL_H_

#include <nccl.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/check.h"
#include "comm/communicator.h"
#include "comm/device/device_work.h"
#include "comm/nccl/local_ranks.h"
#include "comm/nccl/nccl_backend.h"
#include "comm/nccl/nccl_rank.h"
#include "comm/signature.h"
#include "comm/store.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm::usage {

extern Store& store;
extern DeviceWork& work;

namespace nccl_group_h {
extern const int rank;
extern const nn::Tensor gradients;
extern const Event gradients_ready;
}  // namespace nccl_group_h

}  // namespace troupe::comm::usage

namespace troupe::comm::internal::usage {

namespace local_ranks_h {
extern LocalRanks& ranks;
extern const Collective collective;
}  // namespace local_ranks_h

namespace nccl_comm_h {
extern const int rank, size, count;
extern const ncclUniqueId id;
extern const void* from;
extern void* to;
extern cudaStream_t stream;
}  // namespace nccl_comm_h

namespace nccl_id_h {
extern const NcclGroupOptions options;
extern Store& store;
void Init(const ncclUniqueId& id);
}  // namespace nccl_id_h

namespace nccl_scratch_h {
extern const int rank, size;
extern const std::vector<Collective> collectives;
extern DeviceWork& work;
extern ncclComm_t comm;
extern void* stream;
}  // namespace nccl_scratch_h

namespace pending_collectives_h {
extern const Collective collective;
extern const absl::Time now;
extern const absl::Duration timeout;
void Fail(const std::string& what);
}  // namespace pending_collectives_h

namespace nccl_calls_h {
extern const Collective collective;
extern const std::vector<Collective> collectives;
extern const int rank, size;
extern ncclComm_t comm;
extern cudaStream_t stream;
extern void* scratch;
}  // namespace nccl_calls_h

namespace start_words_h {
extern const Collective collective;
extern std::int64_t* mine;
std::vector<std::int64_t> Gathered();
}  // namespace start_words_h

namespace nccl_rank_h {
extern const std::shared_ptr<NcclRank> rank;
extern DeviceWork& work;
extern const Collective collective;
extern const Event after;
extern const absl::Status status;
}  // namespace nccl_rank_h

}  // namespace troupe::comm::internal::usage

#endif  // TESTS_USAGE_WORDS_COMM_NCCL_H_
