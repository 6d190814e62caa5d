#include "actors/fabric_stage_link.h"

#include <memory>
#include <utility>
#include <vector>

#include "actors/cluster/roster.h"
#include "gtest/gtest.h"
#include "tests/comm/shelf.h"
#include "tests/comm/sim_world.h"

namespace troupe::actors {
namespace {

// The link of `rank`, in process 0 of two that have two ranks each: ranks 0 and
// 1 have the first stages of two replicas.
FabricStageLink LinkOf(int rank, comm::SimWorld& world) {
  const auto roster = std::make_shared<Roster>(
      std::vector<Member>{{0, 2, "here", 1, ""}, {1, 2, "there", 2, ""}});
  // The world outlives it.
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

// As where a GPU's rank has enqueued its next step, which waits for the sum of
// a loss to which the other replica has still to come.
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

}  // namespace
}  // namespace troupe::actors
