#include "actors/strands/fabric_stage_link.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/setup/roster.h"
#include "gtest/gtest.h"
#include "nn/tensor/caching_allocator.h"
#include "pipeline/plan.h"
#include "tests/comm/shelf.h"
#include "tests/comm/sim_world.h"

namespace troupe::actors {
namespace {

// Returns the link of `rank`, in process 0 of two with two ranks each: ranks 0
// and 1 have the first stages of two replicas.
FabricStageLink LinkOf(int rank, comm::SimWorld& world) {
  const auto roster = std::make_shared<Roster>(
      std::vector<Member>{{0, 2, "here", 1, ""}, {1, 2, "there", 2, ""}});
  // The world outlives the link.
  const std::shared_ptr<comm::Fabric> fabric(&world.fabric(0),
                                             [](comm::Fabric*) {});
  return FabricStageLink(fabric, roster, rank, {rank, rank + 2},
                         /*local=*/nullptr);
}

Transfer ActivationAfter(const base::Event& ready) {
  Transfer transfer;
  transfer.stage = 1;
  transfer.forward = true;
  transfer.ready = ready;
  return transfer;
}

void Drive(comm::SimWorld& world) {
  while (world.Progress()) {
  }
}

// This happens if a rank on a GPU has enqueued its next step, which waits for
// the sum of a loss that the other replica has not joined yet.
TEST(FabricStageLink, WhatARankHasToWaitForHoldsUpNoOther) {
  comm::SimWorldOptions options;
  options.process_of = {0, 0, 1, 1};
  comm::SimWorld world(options);
  std::vector<std::shared_ptr<comm::Shelf>> shelves;
  for (int rank : {0, 1}) {
    shelves.push_back(std::make_shared<comm::Shelf>());
    world.fabric(1).SetParcelHandler(TransferChannel(rank), shelves.back());
  }
  FabricStageLink first = LinkOf(0, world), second = LinkOf(1, world);
  const base::Event later = base::Event::Make();
  first.Send(/*stage=*/1, ActivationAfter(later));
  second.Send(/*stage=*/1, ActivationAfter(base::Event()));
  Drive(world);
  EXPECT_EQ(shelves[0]->headers.size(), 0u);
  ASSERT_EQ(shelves[1]->headers.size(), 1u);
  EXPECT_EQ(DecodeTransfer(shelves[1]->headers[0])->rank, 3);
  later.Complete(absl::OkStatus());
  Drive(world);
  ASSERT_EQ(shelves[0]->headers.size(), 1u);
  EXPECT_EQ(DecodeTransfer(shelves[0]->headers[0])->rank, 2);
}

// The tensors of one transfer, of any shape and dtype, have a header each.
TEST(FabricStageLink, SendsEachTensorByItself) {
  comm::SimWorldOptions options;
  options.process_of = {0, 0, 1, 1};
  comm::SimWorld world(options);
  const auto shelf = std::make_shared<comm::Shelf>();
  world.fabric(1).SetParcelHandler(TransferChannel(0), shelf);
  FabricStageLink link = LinkOf(0, world);
  nn::CachingAllocator memory;
  Transfer transfer = ActivationAfter(base::Event());
  transfer.tensors = {nn::Tensor::Zeros({2, 3}, nn::DType::kF32, memory),
                      nn::Tensor(),
                      nn::Tensor::Zeros({5}, nn::DType::kI64, memory)};
  link.Send(/*stage=*/1, transfer);
  transfer.tensors.clear();  // a credit
  link.Send(/*stage=*/1, transfer);
  Drive(world);
  ASSERT_EQ(shelf->headers.size(), 4u);
  std::vector<TransferHeader> headers;
  for (const std::string& text : shelf->headers) {
    headers.push_back(DecodeTransfer(text).value());
  }
  for (int i : {0, 1, 2}) {
    EXPECT_EQ(headers[i].tensors, 3);
    EXPECT_EQ(headers[i].number, i);
    EXPECT_EQ(headers[i].has_tensor, i != 1);
  }
  EXPECT_EQ(headers[0].shape, nn::Shape({2, 3}));
  EXPECT_EQ(headers[2].dtype, nn::DType::kI64);
  EXPECT_EQ(headers[3].tensors, 0);
}

TEST(FabricStageLink, CarriesStepsOfEveryKind) {
  Transfer transfer;
  for (const StepKind kind :
       {StepKind::kTrain, StepKind::kEvaluate, StepKind::kPredict}) {
    transfer.kind = kind;
    const auto header = DecodeTransfer(EncodeTransfer(0, transfer, 0));
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->transfer.kind, kind);
  }
  transfer.kind = static_cast<StepKind>(3);
  EXPECT_EQ(DecodeTransfer(EncodeTransfer(0, transfer, 0)).status(),
            absl::InvalidArgumentError(
                "a transfer between stages with a wrong kind"));
}

TEST(FabricStageLink, RefusesHeadersWhoseNumbersDoNotFit) {
  Transfer transfer;
  transfer.tensors.resize(2);
  std::string header = EncodeTransfer(/*rank=*/0, transfer, /*number=*/1);
  EXPECT_EQ(DecodeTransfer(header)->number, 1);
  header = EncodeTransfer(0, transfer, 1);
  EXPECT_EQ(DecodeTransfer(header.substr(1)).status(),
            absl::InvalidArgumentError(
                "a transfer between stages with a wrong header"));
  transfer.tensors.resize(pipeline::kStageTensorsMax + 1);
  EXPECT_EQ(DecodeTransfer(EncodeTransfer(0, transfer, 0)).status(),
            absl::InvalidArgumentError(
                "a transfer between stages with a wrong count"));
}

}  // namespace
}  // namespace troupe::actors
