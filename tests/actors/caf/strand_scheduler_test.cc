#include "actors/caf/strand_scheduler.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "actors/caf/caf.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using Task = std::function<void(caf::event_based_actor*)>;

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(Task)
CAF_BEGIN_TYPE_ID_BLOCK(scheduler_test, caf::first_custom_type_id)
CAF_ADD_TYPE_ID(scheduler_test, (Task))
CAF_END_TYPE_ID_BLOCK(scheduler_test)

namespace troupe::actors {
namespace {

// Runs each task that it is sent.
caf::behavior Worker(caf::event_based_actor* self, int /*unused*/) {
  return {[self](const Task& task) { task(self); }};
}

class StrandSchedulerTest : public testing::Test {
 protected:
  // The supply has two threads for the system and two for strands.
  StrandSchedulerTest() : threads_(ThreadSupply::Start(4).value()) {
    config_.add_message_types<caf::id_block::scheduler_test>();
    RunOnThreads(*threads_, config_);
    system_.emplace(config_);
  }
  caf::actor Strand() { return SpawnStrand(*system_, Worker, 0); }
  caf::actor Plain() { return system_->spawn(Worker, 0); }
  void Send(const caf::actor& actor, Task task) {
    caf::anon_send(actor, std::move(task));
  }
  // Returns the thread that runs `actor`.
  std::thread::id ThreadOf(const caf::actor& actor) {
    std::thread::id id;
    absl::Notification known;
    Send(actor, [&](caf::event_based_actor*) {
      id = std::this_thread::get_id();
      known.Notify();
    });
    known.WaitForNotification();
    return id;
  }

  std::unique_ptr<ThreadSupply> threads_;
  caf::actor_system_config config_;
  std::optional<caf::actor_system> system_;
};

TEST_F(StrandSchedulerTest, AStrandHasAThreadOfItsOwn) {
  const caf::actor a = Strand(), b = Strand();
  absl::Notification a_runs, b_runs;
  Send(a, [&](caf::event_based_actor*) {
    a_runs.Notify();
    b_runs.WaitForNotification();
  });
  a_runs.WaitForNotification();
  const std::thread::id of_b = ThreadOf(b), of_others = ThreadOf(Plain());
  b_runs.Notify();
  EXPECT_NE(ThreadOf(a), of_b);
  EXPECT_NE(ThreadOf(a), of_others);
  EXPECT_NE(of_b, of_others);
  EXPECT_EQ(ThreadOf(b), of_b) << "and keeps it";
}

TEST_F(StrandSchedulerTest, OtherActorsShareOne) {
  EXPECT_EQ(ThreadOf(Plain()), ThreadOf(Plain()));
}

TEST_F(StrandSchedulerTest, WhatIsDelayedComes) {
  const caf::actor strand = Strand();
  absl::Notification came;
  Send(strand, [&](caf::event_based_actor* self) {
    self->delayed_send(self, std::chrono::milliseconds(1),
                       Task([&](caf::event_based_actor*) { came.Notify(); }));
  });
  came.WaitForNotification();
}

TEST_F(StrandSchedulerTest, AnActorThatHasEndedHearsNothing) {
  const caf::actor strand = Strand(), plain = Plain();
  for (const caf::actor& actor : {strand, plain}) {
    Send(actor, [](caf::event_based_actor* self) { self->quit(); });
    Send(actor, [](caf::event_based_actor*) { FAIL() << "it has ended"; });
  }
  system_.reset();
}

// The system's destructor waits for the actor, although no handle to it is
// left.
TEST_F(StrandSchedulerTest, AnActorThatNobodyKnowsEnds) {
  Send(Strand(), [](caf::event_based_actor*) {});
  Strand();
  Plain();
  system_.reset();
}

TEST_F(StrandSchedulerTest, AnExceptionThatNobodyHandlesIsPrinted) {
  testing::internal::CaptureStderr();
  Send(Strand(), [](caf::event_based_actor*) {
    throw std::runtime_error("a planted one");
  });
  system_.reset();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("a planted one"));
}

// A module of the system that throws when it starts, as CAF's modules may that
// open sockets and start threads.
class ModuleThatCannotStart : public caf::actor_system::module {
 public:
  void start() override { throw std::runtime_error("no memory"); }
  void stop() override {}
  void init(caf::actor_system_config&) override {}
  id_t id() const override { return middleman; }
  void* subtype_ptr() override { return this; }
};

TEST(StrandSchedulerDeathTest, EndsWithTheSystemThatCannotStart) {
  const auto start = [] {
    std::set_terminate([] {
      std::fputs("the end\n", stderr);
      std::_Exit(1);
    });
    const std::unique_ptr<ThreadSupply> threads = StartActorThreads(8).value();
    caf::actor_system_config config;
    RunOnThreads(*threads, config);
    config.module_factories.push_back(
        [](caf::actor_system&) { return new ModuleThatCannotStart; });
    try {
      const caf::actor_system system(config);
    } catch (const std::runtime_error&) {
    }
  };
  EXPECT_EXIT(start(), testing::ExitedWithCode(1), "^the end\n$");
}

}  // namespace
}  // namespace troupe::actors
