#include "actors/fabric_stage_link.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/tensor/caching_allocator.h"

namespace troupe::actors {
namespace {

// A transfer on the wire: as it lies in memory, little-endian as every machine
// that Troupe runs on.
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
};
static_assert(sizeof(WireTransfer) == 80);
static_assert(std::is_trivially_copyable_v<WireTransfer>);

absl::Status BadField(absl::string_view field) {
  return absl::InvalidArgumentError(
      absl::StrCat("a transfer between stages with a wrong ", field));
}

// Makes room for what comes, and hands it to the compute strand it is for.
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
    header->transfer.tensor = payload;
    caf::anon_send(computes_[header->rank], std::move(header->transfer));
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
  const std::vector<ComputeActor> computes_;  // by rank
  nn::CachingAllocator memory_;
};

// `receiver` gets what the ranks of other processes send.
void SetHandlers(const ProcessContext& process,
                 const std::shared_ptr<TransferReceiver>& receiver) {
  for (int rank = 0; rank < process.roster->ranks(); ++rank) {
    if (process.roster->ProcessOf(rank) == process.fabric->process()) continue;
    process.fabric->SetParcelHandler(TransferChannel(rank), receiver);
  }
}

}  // namespace

std::string EncodeTransfer(int rank, const Transfer& transfer) {
  WireTransfer wire = {};
  wire.step = transfer.step;
  wire.generation = transfer.generation;
  wire.rank = rank;
  wire.stage = transfer.stage;
  wire.micro_batch = transfer.micro_batch;
  wire.kind = static_cast<std::uint8_t>(transfer.kind);
  wire.forward = transfer.forward;
  if (transfer.tensor.defined()) {
    const nn::Shape& shape = transfer.tensor.shape();
    wire.has_tensor = 1;
    wire.dtype = static_cast<std::uint8_t>(transfer.tensor.dtype());
    wire.extents = static_cast<std::uint8_t>(shape.rank());
    for (int i = 0; i < shape.rank(); ++i) wire.dims[i] = shape[i];
  }
  return std::string(reinterpret_cast<const char*>(&wire), sizeof(wire));
}

absl::StatusOr<TransferHeader> DecodeTransfer(absl::string_view header) {
  WireTransfer wire;
  if (header.size() != sizeof(wire)) return BadField("header");
  std::memcpy(&wire, header.data(), sizeof(wire));
  if (wire.kind > static_cast<std::uint8_t>(StepKind::kEvaluate)) {
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
  TransferHeader decoded;
  decoded.rank = wire.rank;
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
  const absl::StatusOr<comm::Event> sent = fabric_->SendParcel(
      process, TransferChannel(rank_), EncodeTransfer(ranks_[stage], transfer),
      transfer.tensor, transfer.ready);
  // A peer that is lost ends the job elsewhere.
  if (!sent.ok()) return;
  sent->OnReady([tensor = transfer.tensor](const absl::Status&) {});
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
