#include "actors/cluster/control_session.h"

#include <array>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "actors/caf/strand_scheduler.h"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

// The two processes of a job, each in a thread.
class ControlSessionTest : public testing::Test {
 protected:
  static constexpr absl::Duration kLimit = absl::Seconds(20);

  ControlSessionTest() {
    for (int process : {0, 1}) {
      ClusterOptions options;
      options.process = process;
      options.processes = 2;
      options.insecure = true;
      options.join_timeout = kLimit;
      if (process == 0) {
        options.on_listening = [this](int port) {
          port_.set_value(port);
          return absl::OkStatus();
        };
      } else {
        // Process 0 listens when this is called.
        options.master_port = port_.get_future().get();
      }
      sessions_[process] = std::make_unique<ControlSession>(
          options, StartActorThreads(/*count=*/2).value(), /*trace=*/nullptr);
      opened_[process] = sessions_[process]->Open();
    }
  }
  void SetUp() override {
    for (const absl::Status& opened : opened_) ASSERT_TRUE(opened.ok());
    Welcome offer;
    offer.generation = 7;
    offer.plan = "the plan";
    sessions_[0]->Offer(std::move(offer));
  }
  // Process 1 leaves first: it has said farewell.
  void TearDown() override {
    for (int process : {1, 0}) sessions_[process]->Leave();
  }
  ControlSession& session(int process) { return *sessions_[process]; }

  // Joins both with these agreements.
  std::array<absl::StatusOr<Welcome>, 2> Join(const std::string& of_0,
                                              const std::string& of_1) {
    std::array<absl::StatusOr<Welcome>, 2> welcomes;
    std::thread other([&] { welcomes[1] = session(1).Join(of_1); });
    welcomes[0] = session(0).Join(of_0);
    other.join();
    return welcomes;
  }

 private:
  std::promise<int> port_;
  std::unique_ptr<ControlSession> sessions_[2];
  absl::Status opened_[2];
};

TEST_F(ControlSessionTest, AllGetTheOfferWithASecretAndTheEnd) {
  const auto [first, second] = Join("rate = 1", "rate = 1");
  ASSERT_TRUE(first.ok() && second.ok()) << second.status();
  for (const absl::StatusOr<Welcome>& welcome : {first, second}) {
    EXPECT_EQ(welcome->generation, 7);
    EXPECT_EQ(welcome->plan, "the plan");
    EXPECT_EQ(welcome->members.size(), 2u);
    EXPECT_EQ(welcome->token, first->token);
  }
  EXPECT_EQ(first->token.size(), 32u);
  EXPECT_FALSE(session(1).outcome()->HasBeenSet());
  JobResult result;
  result.steps = 12;
  session(0).End(result);
  ASSERT_TRUE(session(1).outcome()->WaitFor(kLimit));
  EXPECT_EQ(session(1).outcome()->Wait()->steps, 12);
  session(0).AwaitFarewells();
}

TEST_F(ControlSessionTest, AllReturnTheFirstFailureToStart) {
  const auto [first, second] = Join("", "");
  ASSERT_TRUE(first.ok() && second.ok());
  const absl::Status why = absl::DataLossError("the disk is gone");
  const absl::Status named = session(1).InThisProcess(why);
  EXPECT_TRUE(absl::StartsWith(named.message(), "process 1 ("));
  EXPECT_TRUE(absl::EndsWith(named.message(), "): the disk is gone"));
  absl::Status verdict;
  std::thread failing([&] { verdict = session(1).FailToStart(why, named); });
  EXPECT_EQ(session(0).client().Get("data/1", kLimit).status(), named);
  EXPECT_EQ(session(0).FailToStart(named, named), named);
  failing.join();
  EXPECT_EQ(verdict, named);
}

TEST_F(ControlSessionTest, WhoeverDisagreesReturnsWhatProcess0Says) {
  const auto [first, second] = Join("rate = 1", "rate = 2");
  ASSERT_FALSE(first.ok() || second.ok());
  EXPECT_EQ(second.status(), first.status());
  EXPECT_TRUE(absl::StrContains(first.status().message(), "rate is "));
  EXPECT_EQ(session(0).FailToStart(first.status(), first.status()),
            first.status());
  EXPECT_EQ(session(1).FailToStart(second.status(), second.status()),
            second.status());
}

}  // namespace
}  // namespace troupe::actors
