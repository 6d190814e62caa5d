#include "actors/strands/fabric_stage_link.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/check.h"
#include "nn/tensor/caching_allocator.h"
#include "pipeline/plan.h"

namespace troupe::actors {
namespace {

// The wire format of a transfer: the bytes of this struct, in little-endian
// order as on all machines that Troupe supports.
struct WireTransfer {
  std::int64_t step;
  std::int64_t dims[nn::Shape::kMaxRank];
  std::int32_t generation;
  std::int32_t rank;
  std::int32_t stage;
  std::int32_t micro_batch;
  std::uint8_t kind;
  std::uint8_t forward;
  std::uint8_t dtype;
  std::uint8_t extents;
  std::uint8_t has_tensor;
  std::uint8_t unused[3];
  std::uint16_t tensors;
  std::uint16_t number;
  std::uint32_t unused_too;
};
static_assert(sizeof(WireTransfer) == 88);
static_assert(pipeline::kStageTensorsMax <= 0xffff);
static_assert(std::is_trivially_copyable_v<WireTransfer>);

absl::Status BadField(absl::string_view field) {
  return absl::InvalidArgumentError(
      absl::StrCat("a transfer between stages with a wrong ", field));
}

// Reassembles transfers, whose tensors arrive one by one.
class ArrivingTransfers {
 public:
  // Adds a tensor. Returns the transfer if this was the last of its tensors.
  std::optional<Transfer> Add(TransferHeader header, const nn::Tensor& tensor) {
    if (header.tensors == 0) return std::move(header.transfer);
    const Transfer& transfer = header.transfer;
    const Key key = {header.rank,   transfer.stage,   transfer.step,
                     transfer.kind, transfer.forward, transfer.micro_batch};
    absl::MutexLock lock(&mutex_);
    const auto [found, is_new] = arriving_.try_emplace(key);
    Arriving& arriving = found->second;
    if (is_new) arriving.transfer = std::move(header.transfer);
    arriving.transfer.tensors.resize(header.tensors);
    arriving.transfer.tensors[header.number] = tensor;
    if (++arriving.here < header.tensors) return std::nullopt;
    Transfer whole = std::move(arriving.transfer);
    arriving_.erase(found);
    return whole;
  }

 private:
  // The fields are rank, stage, step, kind, direction, micro-batch.
  using Key = std::tuple<int, int, std::int64_t, StepKind, bool, int>;
  struct Arriving {
    Transfer transfer;
    int here = 0;
  };

  absl::Mutex mutex_;  // senders have a thread each
  std::map<Key, Arriving> arriving_ ABSL_GUARDED_BY(mutex_);
};

// Allocates memory for tensors that arrive, and sends each complete transfer to
// its compute strand.
class TransferReceiver : public comm::ParcelHandler {
 public:
  TransferReceiver(int stages, std::vector<ComputeActor> computes)
      : stages_(stages), computes_(std::move(computes)) {}

  absl::StatusOr<nn::Tensor> Receive(const comm::Parcel& parcel) override {
    TROUPE_ASSIGN_OR_RETURN(const TransferHeader header, Decode(parcel));
    if (!header.has_tensor) return nn::Tensor();
    return nn::Tensor::Create(header.shape, header.dtype, memory_);
  }

  void Complete(const comm::Parcel& parcel,
                const nn::Tensor& payload) override {
    absl::StatusOr<TransferHeader> header = Decode(parcel);
    TROUPE_CHECK(header.ok(), "the header was read before");
    const int rank = header->rank;
    std::optional<Transfer> transfer =
        arriving_.Add(*std::move(header), payload);
    if (transfer) caf::anon_send(computes_[rank], *std::move(transfer));
  }

 private:
  absl::StatusOr<TransferHeader> Decode(const comm::Parcel& parcel) const {
    TROUPE_ASSIGN_OR_RETURN(TransferHeader header,
                            DecodeTransfer(parcel.header));
    if (header.rank < 0 || header.rank >= static_cast<int>(computes_.size()) ||
        computes_[header.rank] == nullptr) {
      return BadField("rank");
    }
    if (header.transfer.stage < 0 || header.transfer.stage >= stages_) {
      return BadField("stage");
    }
    const std::size_t bytes =
        header.has_tensor ? static_cast<std::size_t>(header.shape.numel()) *
                                nn::SizeOf(header.dtype)
                          : 0;
    if (bytes != parcel.bytes) {
      return BadField(absl::StrCat("size: ", nn::DTypeName(header.dtype), " ",
                                   header.shape.ToString(), " in ",
                                   parcel.bytes, " bytes"));
    }
    return header;
  }

  const int stages_;
  const std::vector<ComputeActor> computes_;  // one per rank
  nn::CachingAllocator memory_;
  ArrivingTransfers arriving_;
};

// Makes `receiver` the handler of parcels from ranks of other processes.
void SetHandlers(const ProcessContext& process,
                 const std::shared_ptr<TransferReceiver>& receiver) {
  const ProcessLinks& links = process.links;
  for (int rank = 0; rank < links.roster->ranks(); ++rank) {
    if (links.roster->ProcessOf(rank) == links.fabric->process()) continue;
    links.fabric->SetParcelHandler(TransferChannel(rank), receiver);
  }
}

}  // namespace

std::string EncodeTransfer(int rank, const Transfer& transfer, int number) {
  WireTransfer wire = {};
  wire.step = transfer.step;
  wire.generation = transfer.generation;
  wire.rank = rank;
  wire.stage = transfer.stage;
  wire.micro_batch = transfer.micro_batch;
  wire.kind = static_cast<std::uint8_t>(transfer.kind);
  wire.forward = transfer.forward;
  wire.tensors = static_cast<std::uint16_t>(transfer.tensors.size());
  wire.number = static_cast<std::uint16_t>(number);
  const nn::Tensor tensor =
      transfer.tensors.empty() ? nn::Tensor() : transfer.tensors[number];
  if (tensor.defined()) {
    const nn::Shape& shape = tensor.shape();
    wire.has_tensor = 1;
    wire.dtype = static_cast<std::uint8_t>(tensor.dtype());
    wire.extents = static_cast<std::uint8_t>(shape.rank());
    for (int i = 0; i < shape.rank(); ++i) wire.dims[i] = shape[i];
  }
  return std::string(reinterpret_cast<const char*>(&wire), sizeof(wire));
}

absl::StatusOr<TransferHeader> DecodeTransfer(absl::string_view header) {
  WireTransfer wire;
  if (header.size() != sizeof(wire)) return BadField("header");
  std::memcpy(&wire, header.data(), sizeof(wire));
  if (wire.kind > static_cast<std::uint8_t>(StepKind::kPredict)) {
    return BadField("kind");
  }
  if (wire.forward > 1) return BadField("direction");
  if (wire.has_tensor > 1) return BadField("tensor");
  if (wire.dtype > static_cast<std::uint8_t>(nn::DType::kU8)) {
    return BadField("dtype");
  }
  if (wire.extents > nn::Shape::kMaxRank) return BadField("shape");
  const absl::Span<const std::int64_t> dims(wire.dims, wire.extents);
  if (!nn::Shape::Fits(dims)) return BadField("shape");
  if (wire.tensors > pipeline::kStageTensorsMax) return BadField("count");
  if (wire.number >= std::max<int>(wire.tensors, 1)) return BadField("number");
  if (wire.tensors == 0 && wire.has_tensor != 0) return BadField("count");
  TransferHeader decoded;
  decoded.rank = wire.rank;
  decoded.tensors = wire.tensors;
  decoded.number = wire.number;
  decoded.has_tensor = wire.has_tensor != 0;
  decoded.shape = nn::Shape(dims);
  decoded.dtype = static_cast<nn::DType>(wire.dtype);
  Transfer& transfer = decoded.transfer;
  transfer.generation = wire.generation;
  transfer.stage = wire.stage;
  transfer.step = wire.step;
  transfer.kind = static_cast<StepKind>(wire.kind);
  transfer.forward = wire.forward != 0;
  transfer.micro_batch = wire.micro_batch;
  return decoded;
}

FabricStageLink::FabricStageLink(std::shared_ptr<comm::Fabric> fabric,
                                 std::shared_ptr<const Roster> roster, int rank,
                                 std::vector<int> ranks,
                                 std::shared_ptr<StageLink> local)
    : fabric_(std::move(fabric)),
      roster_(std::move(roster)),
      rank_(rank),
      ranks_(std::move(ranks)),
      local_(std::move(local)) {}

void FabricStageLink::Send(int stage, Transfer transfer) {
  TROUPE_CHECK(stage >= 0 && stage < static_cast<int>(ranks_.size()),
               "a transfer goes to a stage that there is");
  const int process = roster_->ProcessOf(ranks_[stage]);
  if (process == fabric_->process()) {
    local_->Send(stage, std::move(transfer));
    return;
  }
  // A credit has no tensor, but is still one parcel.
  const int parcels = std::max(static_cast<int>(transfer.tensors.size()), 1);
  for (int i = 0; i < parcels; ++i) {
    const nn::Tensor tensor =
        transfer.tensors.empty() ? nn::Tensor() : transfer.tensors[i];
    const absl::StatusOr<comm::Event> sent = fabric_->SendParcel(
        process, TransferChannel(rank_),
        EncodeTransfer(ranks_[stage], transfer, i), tensor, transfer.ready);
    // The loss of a peer is handled elsewhere, and ends the job.
    if (!sent.ok()) return;
    sent->OnReady([tensor](const absl::Status&) {});
  }
}

bool FabricStageLink::NeedsHostMemory(int stage) const {
  return roster_->ProcessOf(ranks_[stage]) != fabric_->process();
}

void TakeTransfers(const ProcessContext& process,
                   const std::vector<ComputeActor>& computes) {
  SetHandlers(process,
              std::make_shared<TransferReceiver>(
                  static_cast<int>(process.plan->stages.size()), computes));
}

void RefuseTransfers(const ProcessContext& process) {
  SetHandlers(process, nullptr);
}

}  // namespace troupe::actors
