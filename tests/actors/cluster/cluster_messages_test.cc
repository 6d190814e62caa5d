// Messages between processes survive serialisation, to the bit.

#include "actors/cluster/cluster_messages.h"

#include <limits>
#include <string>
#include <vector>

#include "actors/cluster/agent.h"
#include "caf/binary_deserializer.hpp"
#include "caf/binary_serializer.hpp"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

struct MessagesConfig : caf::actor_system_config {
  MessagesConfig() { AddClusterMessageTypes(*this); }
};

caf::behavior Silence(caf::event_based_actor*, int) {
  return {[](int) {}};
}

class ClusterMessagesTest : public testing::Test {
 protected:
  template <typename T>
  std::vector<char> BytesOf(T value) {
    std::vector<char> bytes;
    caf::binary_serializer sink(system_.dummy_execution_unit(), bytes);
    EXPECT_FALSE(sink(value));  // no error
    return bytes;
  }
  // Serialises a value and reads it back: alone, and inside a caf::message, as
  // the network does.
  template <typename T>
  T ThereAndBack(const T& value) {
    T back, in_message;
    const std::vector<char> bytes = BytesOf(value);
    caf::binary_deserializer source(system_.dummy_execution_unit(), bytes);
    EXPECT_FALSE(source(back));
    EXPECT_EQ(BytesOf(back), bytes);
    const std::vector<char> packed = BytesOf(caf::make_message(value));
    caf::message message;
    caf::binary_deserializer unpack(system_.dummy_execution_unit(), packed);
    EXPECT_FALSE(unpack(message));
    EXPECT_TRUE(message.match_elements<T>());
    if (message.match_elements<T>()) in_message = message.get_as<T>(0);
    EXPECT_EQ(BytesOf(in_message), bytes);
    return back;
  }
  caf::strong_actor_ptr SomeActor() {
    actors_.push_back(system_.spawn(Silence, 0));
    return caf::actor_cast<caf::strong_actor_ptr>(actors_.back());
  }
  void TearDown() override {
    for (const caf::actor& actor : actors_) {
      caf::anon_send_exit(actor, caf::exit_reason::kill);
    }
  }

  MessagesConfig config_;
  caf::actor_system system_{config_};
  std::vector<caf::actor> actors_;
};

Member SomeMember(int process) {
  Member member;
  member.process = process;
  member.ranks = 3;
  member.host = "node";
  member.pid = std::int64_t{1} << 40;
  member.data_host = "fd00::1";
  return member;
}

void ExpectSame(const Member& a, const Member& b) {
  EXPECT_EQ(a.process, b.process);
  EXPECT_EQ(a.ranks, b.ranks);
  EXPECT_EQ(a.host, b.host);
  EXPECT_EQ(a.pid, b.pid);
  EXPECT_EQ(a.data_host, b.data_host);
}

TEST_F(ClusterMessagesTest, JoiningTravels) {
  Join join;
  join.member = SomeMember(7);
  join.nonce = ~std::uint64_t{0} - 1;
  join.agent = SomeActor();
  join.processes = 9;
  join.version = "0.1";
  join.agreement = "a = 1\nb = \xc3\xa4\n";
  const Join back = ThereAndBack(join);
  ExpectSame(back.member, join.member);
  EXPECT_EQ(back.nonce, join.nonce);
  EXPECT_EQ(back.agent, join.agent);
  EXPECT_EQ(back.processes, 9);
  EXPECT_EQ(back.version, join.version);
  EXPECT_EQ(back.agreement, join.agreement);
  EXPECT_EQ(ThereAndBack(Join()).agent, nullptr);

  Welcome welcome;
  welcome.generation = 4;
  welcome.nonce = join.nonce;
  welcome.members = {SomeMember(0), SomeMember(1)};
  welcome.token = std::string("\0\xff\n", 3);
  welcome.plan = "{}";
  welcome.resume_path = "out/step-7";
  welcome.folder_mark = "process 7 on n1\n";
  const Welcome heard = ThereAndBack(welcome);
  EXPECT_EQ(heard.generation, 4);
  EXPECT_EQ(heard.nonce, welcome.nonce);
  ASSERT_EQ(heard.members.size(), 2u);
  ExpectSame(heard.members[1], welcome.members[1]);
  EXPECT_EQ(heard.token, welcome.token);
  EXPECT_EQ(heard.plan, welcome.plan);
  EXPECT_EQ(heard.resume_path, welcome.resume_path);
  EXPECT_EQ(heard.folder_mark, welcome.folder_mark);

  const Refused refused = ThereAndBack(Refused{14, "why"});
  EXPECT_EQ(refused.code, 14);
  EXPECT_EQ(refused.message, "why");
}

TEST_F(ClusterMessagesTest, StoreAndSupervisorTravel) {
  const SetKey set = ThereAndBack(SetKey{"key", std::string(3000, 'x')});
  EXPECT_EQ(set.key, "key");
  EXPECT_EQ(set.value, std::string(3000, 'x'));
  EXPECT_EQ(ThereAndBack(GetKey{"key"}).key, "key");
  EXPECT_EQ(ThereAndBack(KeyValue{"key", "value"}).value, "value");
  EXPECT_EQ(ThereAndBack(GetSupervisor{3}).generation, 3);
  const SupervisorIs is = {SomeActor()};
  EXPECT_EQ(ThereAndBack(is).supervisor, is.supervisor);
}

TEST_F(ClusterMessagesTest, CrewsAndSignsTravel) {
  CrewReady crew;
  crew.generation = 3;
  crew.process = 2;
  crew.ranks = {SomeActor(), SomeActor()};
  crew.checkpointer = SomeActor();
  const CrewReady back = ThereAndBack(crew);
  EXPECT_EQ(back.generation, 3);
  EXPECT_EQ(back.process, 2);
  EXPECT_EQ(back.ranks, crew.ranks);
  EXPECT_EQ(back.checkpointer, crew.checkpointer);
  EXPECT_EQ(ThereAndBack(Heartbeat{3, 2}).process, 2);
  EXPECT_EQ(ThereAndBack(Heartbeat{3, 2}).generation, 3);
  EXPECT_EQ(ThereAndBack(Farewell{3, 2}).process, 2);
  EXPECT_EQ(ThereAndBack(Farewell{3, 2}).generation, 3);
}

// CAF's own floats hang on infinities and lose NaNs (docs/caf.md).
TEST_F(ClusterMessagesTest, AResultTravelsToTheBit) {
  const double nan = FromBits(0x7ff8dead'beef0001);
  const double values[] = {0.1,
                           -0.0,
                           nan,
                           std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::denorm_min()};
  for (const double value : values) {
    JobResult result;
    result.steps = std::int64_t{1} << 40;
    result.loss = result.seconds = value;
    result.stopped = true;
    result.evaluation.step = 5;
    result.evaluation.count = 10'000;
    result.evaluation.loss = result.evaluation.accuracy = value;
    result.checkpoint = "out/step-5";
    const JobEnded ended = ThereAndBack(ToMessage(3, result));
    EXPECT_EQ(ended.generation, 3);
    const absl::StatusOr<JobResult> back = ToResult(ended);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back->steps, result.steps);
    EXPECT_EQ(Bits(back->loss), Bits(value));
    EXPECT_EQ(Bits(back->seconds), Bits(value));
    EXPECT_TRUE(back->stopped);
    EXPECT_EQ(back->evaluation.step, 5);
    EXPECT_EQ(back->evaluation.count, 10'000);
    EXPECT_EQ(Bits(back->evaluation.loss), Bits(value));
    EXPECT_EQ(Bits(back->evaluation.accuracy), Bits(value));
    EXPECT_EQ(back->checkpoint, "out/step-5");
  }
}

TEST_F(ClusterMessagesTest, AFailureTravels) {
  const absl::Status status = absl::DataLossError("offset 16: truncated");
  const JobEnded ended = ThereAndBack(ToMessage(3, status));
  EXPECT_EQ(ended.generation, 3);
  EXPECT_EQ(ToResult(ended).status(), status);
}

}  // namespace
}  // namespace troupe::actors
