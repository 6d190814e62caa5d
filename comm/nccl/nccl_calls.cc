#include "comm/nccl/nccl_calls.h"

#include <cstddef>
#include <cstdint>

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

  // Make the sends and receives of a collective that NCCL lacks.
  void Gather();
  void Scatter();
  void AllToAll();

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
  // The next three move elements [at, at + count).
  void Send(int to, const nn::Tensor& from, std::int64_t at,
            std::int64_t count);
  void Receive(int from, const nn::Tensor& to, std::int64_t at,
               std::int64_t count);
  void Keep(const nn::Tensor& from, std::int64_t from_at, const nn::Tensor& to,
            std::int64_t to_at, std::int64_t count);
  void AllToAllByCounts();
  // Returns the arguments of the call for a collective that NCCL has.
  NativeCall Native() const;

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
  if (collective_.by_counts()) return AllToAllByCounts();
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

// NCCL's calls for a kind of collective: `native` if NCCL has the kind,
// otherwise `transfers`. Both are null for a kind that CheckOnDevice() rejects.
struct NcclRow {
  CollectiveKind kind;
  const char* name;  // name of the work in a queue
  ncclResult_t (*native)(const NativeCall& call);
  void (Caller::*transfers)();  // makes sends and receives
};

using Kind = CollectiveKind;
constexpr char kTransfers[] = "ncclSend and ncclRecv";

// clang-format off
constexpr NcclRow kRows[] = {
    {Kind::kAllReduce, "ncclAllReduce", CallAllReduce, nullptr},
    {Kind::kBroadcast, "ncclBroadcast",
     [](const NativeCall& c) {
       return ncclBroadcast(c.from, c.to, c.count, c.type, c.root, c.comm,
                            c.stream);
     }, nullptr},
    {Kind::kBarrier, "ncclAllReduce", CallAllReduce, nullptr},
    {Kind::kReduceUpdate, "", nullptr, nullptr},
    {Kind::kReduce, "ncclReduce",
     [](const NativeCall& c) {
       return ncclReduce(c.from, c.to, c.count, c.type, c.op, c.root, c.comm,
                         c.stream);
     }, nullptr},
    {Kind::kAllGather, "ncclAllGather",
     [](const NativeCall& c) {
       return ncclAllGather(c.from, c.to, c.count, c.type, c.comm, c.stream);
     }, nullptr},
    {Kind::kGather, kTransfers, nullptr, &Caller::Gather},
    {Kind::kScatter, kTransfers, nullptr, &Caller::Scatter},
    {Kind::kReduceScatter, "ncclReduceScatter",
     [](const NativeCall& c) {
       return ncclReduceScatter(c.from, c.to, c.count, c.type, c.op, c.comm,
                                c.stream);
     }, nullptr},
    {Kind::kAllToAll, kTransfers, nullptr, &Caller::AllToAll},
};
// clang-format on

constexpr bool RowsStandInOrder() {
  int number = 0;
  for (const NcclRow& row : kRows) {
    if (static_cast<int>(row.kind) != number++) return false;
  }
  return number == kCollectiveKinds;
}
static_assert(RowsStandInOrder(), "one row for each kind, in their order");

const NcclRow& RowOf(CollectiveKind kind) {
  return kRows[static_cast<int>(kind)];
}

ncclResult_t Caller::Call() {
  const NcclRow& row = RowOf(collective_.kind);
  if (row.native != nullptr) {
    Note(row.native(Native()));
  } else {
    TROUPE_CHECK(row.transfers != nullptr, "CheckOnDevice() rejects the kind");
    (this->*row.transfers)();
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

const char* NcclCallName(CollectiveKind kind) { return RowOf(kind).name; }

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
