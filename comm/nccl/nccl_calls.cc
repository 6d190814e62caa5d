#include "comm/nccl/nccl_calls.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/check.h"
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

// `op` is one that CheckNccl() lets through.
ncclRedOp_t OpOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMin:
      return ncclMin;
    case ReduceOp::kMax:
      return ncclMax;
    case ReduceOp::kProduct:
      return ncclProd;
    default:
      return ncclSum;
  }
}

bool Reduces(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce ||
         kind == CollectiveKind::kReduce ||
         kind == CollectiveKind::kReduceScatter;
}

std::size_t CountOf(const nn::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel());
}

void* At(const nn::Tensor& tensor, std::int64_t element) {
  return static_cast<char*>(tensor.device_data()) +
         element * static_cast<std::int64_t>(nn::SizeOf(tensor.dtype()));
}

// The calls of one collective. The first error stays.
class Caller {
 public:
  Caller(const Collective& collective, const NcclTarget& target)
      : collective_(collective), target_(target) {}

  ncclResult_t Call();

 private:
  const nn::Tensor& input() const {
    return collective_.input.defined() ? collective_.input : collective_.range;
  }
  bool is_root() const { return target_.rank == collective_.root; }

  void Note(ncclResult_t result) {
    if (result_ == ncclSuccess || result_ == ncclInProgress) {
      if (result != ncclSuccess) result_ = result;
    }
  }
  // These carry elements [at, at + count).
  void Send(int to, const nn::Tensor& from, std::int64_t at,
            std::int64_t count);
  void Receive(int from, const nn::Tensor& to, std::int64_t at,
               std::int64_t count);
  void Keep(const nn::Tensor& from, std::int64_t from_at, const nn::Tensor& to,
            std::int64_t to_at, std::int64_t count);
  void Gather();
  void Scatter();
  void AllToAll();
  void AllToAllByCounts();
  void CallOwn();

  const Collective& collective_;
  const NcclTarget& target_;
  ncclResult_t result_ = ncclSuccess;
};

void Caller::Send(int to, const nn::Tensor& from, std::int64_t at,
                  std::int64_t count) {
  if (count == 0) return;
  Note(ncclSend(At(from, at), static_cast<std::size_t>(count),
                TypeOf(from.dtype()), to, target_.comm, target_.stream));
}

void Caller::Receive(int from, const nn::Tensor& to, std::int64_t at,
                     std::int64_t count) {
  if (count == 0) return;
  Note(ncclRecv(At(to, at), static_cast<std::size_t>(count), TypeOf(to.dtype()),
                from, target_.comm, target_.stream));
}

void Caller::Keep(const nn::Tensor& from, std::int64_t from_at,
                  const nn::Tensor& to, std::int64_t to_at,
                  std::int64_t count) {
  if (count == 0 || At(from, from_at) == At(to, to_at)) return;
  const std::size_t bytes =
      static_cast<std::size_t>(count) * nn::SizeOf(from.dtype());
  const cudaError_t copied =
      cudaMemcpyAsync(At(to, to_at), At(from, from_at), bytes,
                      cudaMemcpyDeviceToDevice, target_.stream);
  if (copied != cudaSuccess) Note(ncclUnhandledCudaError);
}

void Caller::Gather() {
  const std::int64_t count = input().numel();
  if (!is_root()) return Send(collective_.root, input(), 0, count);
  for (int r = 0; r < target_.size; ++r) {
    if (r == target_.rank) {
      Keep(input(), 0, collective_.range, r * count, count);
    } else {
      Receive(r, collective_.range, r * count, count);
    }
  }
}

void Caller::Scatter() {
  const std::int64_t count = collective_.range.numel();
  if (!is_root()) return Receive(collective_.root, collective_.range, 0, count);
  for (int r = 0; r < target_.size; ++r) {
    if (r == target_.rank) {
      Keep(input(), r * count, collective_.range, 0, count);
    } else {
      Send(r, input(), r * count, count);
    }
  }
}

void Caller::AllToAll() {
  const std::int64_t count = input().numel() / target_.size;
  for (int r = 0; r < target_.size; ++r) {
    if (r == target_.rank) {
      Keep(input(), r * count, collective_.range, r * count, count);
    } else {
      Send(r, input(), r * count, count);
      Receive(r, collective_.range, r * count, count);
    }
  }
}

void Caller::AllToAllByCounts() {
  std::int64_t sent = 0, received = 0;
  for (int r = 0; r < target_.size; ++r) {
    const std::int64_t send = collective_.send_counts[r];
    const std::int64_t receive = collective_.recv_counts[r];
    if (r == target_.rank) {
      Keep(input(), sent, collective_.range, received, send);
    } else {
      Send(r, input(), sent, send);
      Receive(r, collective_.range, received, receive);
    }
    sent += send;
    received += receive;
  }
}

// Those for which NCCL has a call.
void Caller::CallOwn() {
  const ncclComm_t comm = target_.comm;
  const cudaStream_t stream = target_.stream;
  if (collective_.kind == CollectiveKind::kBarrier) {
    return Note(ncclAllReduce(target_.scratch, target_.scratch, 1, ncclInt32,
                              ncclSum, comm, stream));
  }
  const nn::Tensor& range = collective_.range;
  void* const to = range.defined() ? range.device_data() : nullptr;
  const void* const from = input().device_data();
  const std::size_t count = CountOf(collective_.counted());
  const ncclDataType_t type = TypeOf(collective_.counted().dtype());
  const ncclRedOp_t op = OpOf(collective_.op);
  switch (collective_.kind) {
    case CollectiveKind::kAllReduce:
      return Note(ncclAllReduce(from, to, count, type, op, comm, stream));
    case CollectiveKind::kBroadcast:
      return Note(
          ncclBroadcast(from, to, count, type, collective_.root, comm, stream));
    case CollectiveKind::kReduce:
      return Note(ncclReduce(from, to, count, type, op, collective_.root, comm,
                             stream));
    case CollectiveKind::kAllGather:
      return Note(ncclAllGather(from, to, count, type, comm, stream));
    default:
      return Note(ncclReduceScatter(from, to, count, type, op, comm, stream));
  }
}

ncclResult_t Caller::Call() {
  switch (collective_.kind) {
    case CollectiveKind::kGather:
      Gather();
      break;
    case CollectiveKind::kScatter:
      Scatter();
      break;
    case CollectiveKind::kAllToAll:
      collective_.by_counts() ? AllToAllByCounts() : AllToAll();
      break;
    default:
      CallOwn();
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
  if (!Reduces(collective.kind)) return absl::OkStatus();
  switch (collective.op) {
    case ReduceOp::kSum:
    case ReduceOp::kMin:
    case ReduceOp::kMax:
    case ReduceOp::kProduct:
      return absl::OkStatus();
    case ReduceOp::kAvg:
      return absl::UnimplementedError(absl::StrCat(
          collective.ToString(),
          ": NCCL divides before it adds; use sum and divide afterwards, or "
          "reduction_order = \"tree\""));
    default:
      return absl::UnimplementedError(
          absl::StrCat(collective.ToString(), ": NCCL does not reduce by ",
                       ReduceOpName(collective.op)));
  }
}

const char* NcclCallName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kBarrier:
      return "ncclAllReduce";
    case CollectiveKind::kBroadcast:
      return "ncclBroadcast";
    case CollectiveKind::kReduce:
      return "ncclReduce";
    case CollectiveKind::kAllGather:
      return "ncclAllGather";
    case CollectiveKind::kReduceScatter:
      return "ncclReduceScatter";
    default:
      return "ncclSend and ncclRecv";
  }
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
  // Also after an error: the thread's next calls are no part of this group.
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
