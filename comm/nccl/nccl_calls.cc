#include "comm/nccl/nccl_calls.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "comm/collective_kinds.h"
#include "comm/flow.h"

namespace troupe::comm::internal {
namespace {

ncclDataType_t TypeOf(nn::DType dtype) {
  switch (dtype) {
    case nn::DType::kF32:
      return ncclFloat32;
    case nn::DType::kF64:
      return ncclFloat64;
    case nn::DType::kBF16:
      return ncclBfloat16;
    case nn::DType::kF16:
      return ncclFloat16;
    case nn::DType::kI32:
      return ncclInt32;
    case nn::DType::kI64:
      return ncclInt64;
    case nn::DType::kU8:
      return ncclUint8;
  }
  TROUPE_CHECK(false, "a dtype of nn/tensor/dtype.h");
  return ncclUint8;
}

// Requires an op that CheckNccl() accepts.
ncclRedOp_t OpOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMin:
      return ncclMin;
    case ReduceOp::kMax:
      return ncclMax;
    case ReduceOp::kProduct:
      return ncclProd;
    case ReduceOp::kAvg:
      return ncclAvg;
    default:
      return ncclSum;
  }
}

void* At(const nn::Tensor& tensor, std::int64_t element) {
  return static_cast<char*>(tensor.device_data()) +
         element * static_cast<std::int64_t>(nn::SizeOf(tensor.dtype()));
}

// Arguments of a call of NCCL's for a collective that it has.
struct NativeCall {
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;  // elements
  ncclDataType_t type = ncclInt32;
  ncclRedOp_t op = ncclSum;
  int root = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};

// Makes the calls of one collective; keeps the first error.
class Caller {
 public:
  Caller(const Collective& collective, const NcclTarget& target)
      : collective_(collective), target_(target) {}

  ncclResult_t Call();

 private:
  const nn::Tensor& input() const {
    return collective_.input.defined() ? collective_.input : collective_.range;
  }

  void Note(ncclResult_t result) {
    if (result_ == ncclSuccess || result_ == ncclInProgress) {
      if (result != ncclSuccess) result_ = result;
    }
  }
  // Makes the sends and receives of a collective that NCCL lacks.
  void Transfer();
  // Copies the block that this rank sends to itself.
  void Keep(const Block& block);
  // Returns the arguments of the call for a collective that NCCL has.
  NativeCall Native() const;

  const Collective& collective_;
  const NcclTarget& target_;
  ncclResult_t result_ = ncclSuccess;
};

void Caller::Transfer() {
  std::vector<const Collective*> ranks(target_.size, nullptr);
  ranks[target_.rank] = &collective_;
  const absl::StatusOr<std::vector<Block>> blocks = FlowOf(ranks);
  TROUPE_CHECK(blocks.ok(), "CheckNccl() has compared this rank's counts");
  const ncclDataType_t type = TypeOf(collective_.counted().dtype());
  for (const Block& block : *blocks) {
    TROUPE_CHECK(block.from != Block::kAll && block.to != Block::kAll,
                 "a kind that moves blocks of all ranks has a row of kNative");
    const std::size_t count = static_cast<std::size_t>(block.count);
    if (block.from != target_.rank) {
      Note(ncclRecv(At(collective_.range, block.to_at), count, type, block.from,
                    target_.comm, target_.stream));
    } else if (block.to != target_.rank) {
      Note(ncclSend(At(input(), block.from_at), count, type, block.to,
                    target_.comm, target_.stream));
    } else {
      Keep(block);
    }
  }
}

void Caller::Keep(const Block& block) {
  const void* const from = At(input(), block.from_at);
  void* const to = At(collective_.range, block.to_at);
  if (from == to) return;
  const std::size_t bytes = static_cast<std::size_t>(block.count) *
                            nn::SizeOf(collective_.range.dtype());
  const cudaError_t copied = cudaMemcpyAsync(
      to, from, bytes, cudaMemcpyDeviceToDevice, target_.stream);
  if (copied != cudaSuccess) Note(ncclUnhandledCudaError);
}

NativeCall Caller::Native() const {
  NativeCall call;
  call.comm = target_.comm;
  call.stream = target_.stream;
  if (!RuleOf(collective_.kind).moves_data()) {
    // A barrier reduces one int.
    call.from = call.to = target_.scratch;
    call.count = 1;
    return call;
  }
  const nn::Tensor& range = collective_.range;
  const nn::Tensor& counted = collective_.counted();
  call.from = input().device_data();
  call.to = range.defined() ? range.device_data() : nullptr;
  call.count = static_cast<std::size_t>(counted.numel());
  call.type = TypeOf(counted.dtype());
  call.op = OpOf(collective_.op);
  call.root = collective_.root;
  return call;
}

// --- The table. ---

ncclResult_t CallAllReduce(const NativeCall& c) {
  return ncclAllReduce(c.from, c.to, c.count, c.type, c.op, c.comm, c.stream);
}

// A kind of collective that NCCL has. The others are sends and receives, which
// follow from the kind's flow (comm/flow.h).
struct NcclRow {
  CollectiveKind kind;
  const char* name;  // name of the work in a queue
  ncclResult_t (*call)(const NativeCall& call);
};

using Kind = CollectiveKind;

// clang-format off
constexpr NcclRow kNative[] = {
    {Kind::kAllReduce, "ncclAllReduce", CallAllReduce},
    {Kind::kBroadcast, "ncclBroadcast",
     [](const NativeCall& c) {
       return ncclBroadcast(c.from, c.to, c.count, c.type, c.root, c.comm,
                            c.stream);
     }},
    {Kind::kBarrier, "ncclAllReduce", CallAllReduce},
    {Kind::kReduce, "ncclReduce",
     [](const NativeCall& c) {
       return ncclReduce(c.from, c.to, c.count, c.type, c.op, c.root, c.comm,
                         c.stream);
     }},
    {Kind::kAllGather, "ncclAllGather",
     [](const NativeCall& c) {
       return ncclAllGather(c.from, c.to, c.count, c.type, c.comm, c.stream);
     }},
    {Kind::kReduceScatter, "ncclReduceScatter",
     [](const NativeCall& c) {
       return ncclReduceScatter(c.from, c.to, c.count, c.type, c.op, c.comm,
                                c.stream);
     }},
};
// clang-format on

// Returns null if NCCL lacks the kind.
const NcclRow* NativeOf(CollectiveKind kind) {
  for (const NcclRow& row : kNative) {
    if (row.kind == kind) return &row;
  }
  return nullptr;
}

ncclResult_t Caller::Call() {
  const NcclRow* const native = NativeOf(collective_.kind);
  if (native != nullptr) {
    Note(native->call(Native()));
  } else {
    Transfer();
  }
  return result_;
}

}  // namespace

absl::Status CheckNccl(const Collective& collective, int rank) {
  if (collective.by_counts()) {
    const std::int64_t sent = collective.send_counts[rank];
    const std::int64_t expected = collective.recv_counts[rank];
    if (sent != expected) return UnequalCounts(rank, sent, rank, expected);
  }
  if (!RuleOf(collective.kind).reduces) return absl::OkStatus();
  switch (collective.op) {
    case ReduceOp::kSum:
    case ReduceOp::kMin:
    case ReduceOp::kMax:
    case ReduceOp::kProduct:
    case ReduceOp::kAvg:
      return absl::OkStatus();
    default:
      return absl::UnimplementedError(absl::StrCat(
          collective.ToString(), ": NCCL does not reduce by ",
          ReduceOpName(collective.op), "; take reduction_order = \"tree\""));
  }
}

const char* NcclCallName(CollectiveKind kind) {
  const NcclRow* const native = NativeOf(kind);
  return native != nullptr ? native->name : "ncclSend and ncclRecv";
}

ncclResult_t CallNccl(absl::Span<const Collective> collectives,
                      const NcclTarget& target) {
  const ncclResult_t begun = ncclGroupStart();
  if (begun != ncclSuccess) return begun;
  ncclResult_t called = ncclSuccess;
  for (const Collective& collective : collectives) {
    called = Caller(collective, target).Call();
    if (called != ncclSuccess && called != ncclInProgress) break;
  }
  // Must run after an error too: the thread's next calls are not part of this
  // group.
  const ncclResult_t ended = ncclGroupEnd();
  return called != ncclSuccess && called != ncclInProgress ? called : ended;
}

absl::Status NcclStatus(ncclResult_t result, ncclComm_t comm,
                        absl::string_view what) {
  const char* const detail = ncclGetLastError(comm);
  const std::string message = absl::StrCat(
      what, ": NCCL: ", ncclGetErrorString(result),
      detail == nullptr || *detail == '\0' ? "" : absl::StrCat(": ", detail));
  return result == ncclRemoteError || result == ncclSystemError
             ? absl::UnavailableError(message)
             : absl::InternalError(message);
}

}  // namespace troupe::comm::internal
