// Conformance tests that every Link must pass, independent of its transport. A
// transport's test is
//
//   INSTANTIATE_TEST_SUITE_P(Tcp, LinkTest,
//                            testing::Values(LinkKind{"Tcp", &MakeTcpPair}));

#ifndef TESTS_COMM_LINKS_LINK_SUITE_H_
#define TESTS_COMM_LINKS_LINK_SUITE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "comm/link.h"
#include "gtest/gtest.h"
#include "tests/comm/links/link_test_util.h"

namespace troupe::comm {

struct LinkKind {
  const char* name;
  LinkPair (*make)();
  // Number of small frames that each end sends before either receives any.
  std::uint64_t small_frames = 8'000;
  // Whether it sends long payloads from their memory: a link that ends waits
  // for the peer to read those that have begun.
  bool lends_payloads = false;
};

class LinkTest : public testing::TestWithParam<LinkKind> {
 protected:
  LinkTest() : pair_(GetParam().make()) {
    if (pair_.a == nullptr) return;
    pair_.a->SetSink(&at_a_);
    pair_.b->SetSink(&at_b_);
  }
  void SetUp() override {
    if (pair_.a == nullptr) GTEST_SKIP() << "skipped: Open MPI is not here";
  }
  ~LinkTest() override {
    EXPECT_EQ(at_a_.complaints(), "");
    EXPECT_EQ(at_b_.complaints(), "");
  }

  bool PumpBoth(const std::function<bool()>& done) {
    return Pump({pair_.a.get(), pair_.b.get()}, done);
  }
  // Sends `text` as frame `seq` from a to b.
  void SendText(std::uint64_t seq, const std::string& text, SendDone* done) {
    Frame frame;
    frame.bytes = static_cast<std::uint32_t>(text.size());
    frame.type = 7;
    frame.seq = seq;
    frame.words[2] = ~seq;
    pair_.a->Send(frame, text.data(), done);
  }

  RecordingSink at_a_;
  RecordingSink at_b_{RecordingSink::Places::kEverySecond};
  LinkPair pair_;
};

}  // namespace troupe::comm

#endif  // TESTS_COMM_LINKS_LINK_SUITE_H_
