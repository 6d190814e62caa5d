// Tests what a seed may change (the order of messages from different senders,
// messages in the middle of a handler, time), and what it may not.

#include "actors/sim/seeded_scheduler.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "caf/event_based_actor.hpp"
#include "caf/send.hpp"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

constexpr std::uint64_t kSeeds = 200;

// Runs the three actors below, which append to `notes`.
using Body = std::function<void(caf::actor_system&, SeededScheduler&,
                                std::string& notes)>;

std::set<std::string> NotesOf(const Body& body,
                              absl::Duration message_time_max = {}) {
  std::set<std::string> all;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SimulatedConfig config;
    caf::actor_system system(config);
    SeededScheduler scheduler(system, {seed, message_time_max});
    std::string notes;
    body(system, scheduler, notes);
    while (scheduler.Step()) {
    }
    all.insert(notes);
  }
  return all;
}

caf::behavior Noting(caf::event_based_actor*, std::string* notes) {
  return {[=](char note) { notes->push_back(note); }};
}
// Sends a note of its own on each message.
caf::behavior Between(caf::event_based_actor* self, caf::actor to) {
  return {[=](char) { self->send(to, 'b'); }};
}
// Sends twice in one handler, between which `between` may send.
caf::behavior SendingTwice(caf::event_based_actor* self, caf::actor between,
                           caf::actor to) {
  return {[=](char) {
    self->send(between, 'x');
    self->send(to, 'a');
  }};
}

TEST(SeededSchedulerTest, TwoSendsOfOneHandlerAreApart) {
  const std::set<std::string> notes = NotesOf(
      [](caf::actor_system& system, SeededScheduler&, std::string& notes) {
        const caf::actor to = system.spawn(Noting, &notes);
        const caf::actor between = system.spawn(Between, to);
        caf::anon_send(system.spawn(SendingTwice, between, to), 'x');
      });
  EXPECT_EQ(notes, (std::set<std::string>{"ab", "ba"}));
}

caf::behavior Counting(caf::event_based_actor* self, caf::actor to) {
  return {[=](char) {
    for (char note : {'1', '2', '3'}) self->send(to, note);
  }};
}

TEST(SeededSchedulerTest, MessagesOfOneSenderKeepTheirOrder) {
  const std::set<std::string> notes = NotesOf(
      [](caf::actor_system& system, SeededScheduler&, std::string& notes) {
        const caf::actor to = system.spawn(Noting, &notes);
        caf::anon_send(system.spawn(Counting, to), 'x');
      });
  EXPECT_EQ(notes, (std::set<std::string>{"123"}));
}

caf::behavior Working(caf::event_based_actor*, SeededScheduler* scheduler,
                      std::string* notes) {
  return {[=](char note) {
    notes->push_back(note);
    scheduler->Preempt();
    notes->push_back(note);
  }};
}

TEST(SeededSchedulerTest, OthersRunInTheMiddleOfAHandlerButNotTheActorItself) {
  const std::set<std::string> notes =
      NotesOf([](caf::actor_system& system, SeededScheduler& scheduler,
                 std::string& notes) {
        const caf::actor one = system.spawn(Working, &scheduler, &notes);
        const caf::actor other = system.spawn(Working, &scheduler, &notes);
        caf::anon_send(one, 'a');
        caf::anon_send(one, 'b');
        caf::anon_send(other, 'x');
      });
  EXPECT_TRUE(notes.count("axxabb")) << "in the middle of the first";
  EXPECT_TRUE(notes.count("aabxxb")) << "in the middle of the second";
  EXPECT_TRUE(notes.count("aabbxx"));
  for (const std::string& order : notes) {
    std::string own;
    for (char note : order) {
      if (note != 'x') own += note;
    }
    EXPECT_EQ(own, "aabb") << order;
  }
}

caf::behavior Waiting(caf::event_based_actor* self, caf::actor whom,
                      std::string* notes) {
  return {[=](char) {
    self->request(whom, std::chrono::milliseconds(10), 'x')
        .then([=](char) { notes->push_back('a'); },
              [=](const caf::error&) { notes->push_back('t'); });
  }};
}
caf::behavior Answering(caf::event_based_actor* self, caf::actor busy) {
  return {[=](char) {
    self->send(busy, 'y');
    return 'z';
  }};
}

TEST(SeededSchedulerTest, TimeOutsRaceAnswersWhereMessagesTakeTime) {
  const Body body = [](caf::actor_system& system, SeededScheduler&,
                       std::string& notes) {
    static std::string ignored;
    const caf::actor busy = system.spawn(Noting, &ignored);
    const caf::actor whom = system.spawn(Answering, busy);
    caf::anon_send(system.spawn(Waiting, whom, &notes), 'x');
  };
  EXPECT_EQ(NotesOf(body), (std::set<std::string>{"a"}));
  EXPECT_EQ(NotesOf(body, absl::Milliseconds(8)),
            (std::set<std::string>{"a", "t"}));
}

}  // namespace
}  // namespace troupe::actors
