// Fuzz test: mutates the frames that one process sends, with work of every kind
// in flight between several processes. Either a receiver closes its link to
// that process with an error, or the change was harmless. Nothing crashes or
// hangs.

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/base/seeds.h"
#include "tests/comm/reduction_test_data.h"
#include "tests/comm/scene.h"

namespace troupe::comm {
namespace {

// Replaces a field, seldom, by a small number, by any number, or by its value
// plus 1.
template <typename Field>
void Spoil(std::uint64_t* state, Field* field) {
  const std::uint64_t bits = NextBits(state);
  if (bits % 5 == 0) *field = static_cast<Field>(NextBits(state) % 11);
  if (bits % 13 == 0) *field = static_cast<Field>(NextBits(state));
  if (bits % 17 == 0) *field = static_cast<Field>(*field + 1);
}

Frame Mutated(std::uint64_t* state, const Frame& like) {
  Frame frame = like;
  Spoil(state, &frame.type);
  Spoil(state, &frame.part);
  Spoil(state, &frame.tag);
  Spoil(state, &frame.seq);
  for (std::uint64_t& word : frame.words) Spoil(state, &word);
  // Changes the group's number more often than its generation.
  if (NextBits(state) % 8 == 0) frame.group ^= NextBits(state) % 8;
  if (NextBits(state) % 64 == 0) Spoil(state, &frame.group);
  if (NextBits(state) % 4 == 0) frame.bytes = NextBits(state) % 3000;
  return frame;
}

// A link that changes some frames, and sends some twice or not at all.
class MutatingLink final : public Link {
 public:
  MutatingLink(std::unique_ptr<Link> inner, std::uint64_t seed)
      : inner_(std::move(inner)), state_(seed) {}

  int peer() const override { return inner_->peer(); }
  std::string ToString() const override { return inner_->ToString(); }
  void SetSink(FrameSink* sink) override { inner_->SetSink(sink); }
  bool Progress() override { return inner_->Progress(); }
  bool Arm(pollfd* entry, absl::Duration* patience) override {
    return inner_->Arm(entry, patience);
  }
  void Close(const absl::Status& why) override { inner_->Close(why); }

  void Send(const Frame& frame, const char* payload, SendDone* done,
            bool copy) override {
    const std::uint64_t choice = NextBits(&state_) % 40;
    const bool is_lost = choice <= 1;
    if (choice == 1 || choice == 2) SendMutated(frame, payload);
    if (choice == 3) SendCopy(frame, BytesOf(frame, payload));
    if (!is_lost) return inner_->Send(frame, payload, done, copy);
    if (done != nullptr) done->OnSent();
  }

 private:
  void SendMutated(const Frame& like, const char* payload) {
    std::string bytes = BytesOf(like, payload);
    const Frame frame = Mutated(&state_, like);
    bytes.resize(frame.bytes, static_cast<char>(NextBits(&state_)));
    for (int i = 0; i < 3 && !bytes.empty(); ++i) {
      bytes[NextBits(&state_) % bytes.size()] ^= 1 << NextBits(&state_) % 8;
    }
    SendCopy(frame, bytes);
  }
  static std::string BytesOf(const Frame& frame, const char* payload) {
    return frame.bytes > 0 ? std::string(payload, frame.bytes) : std::string();
  }
  void SendCopy(Frame frame, const std::string& bytes) {
    frame.bytes = static_cast<std::uint32_t>(bytes.size());
    inner_->Send(frame, bytes.data(), /*done=*/nullptr, /*copy=*/true);
  }

  const std::unique_ptr<Link> inner_;
  std::uint64_t state_;
};

constexpr std::uint64_t kSeeds = 1000;
constexpr int kStepsMax = 100'000;

TEST(MutatedTraffic, EndsTheLinkWithWordsOrNothing) {
  int lost = 0, rules = 0;
  for (const std::uint64_t seed : Seeds(kSeeds)) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    SimWorldOptions options;
    options.on_lost = [&](int, int, const absl::Status& why) {
      ++lost;
      EXPECT_FALSE(why.ok());
      EXPECT_NE(why.message().find("process "), std::string::npos) << why;
      rules += why.message().find("the other side") == std::string::npos;
    };
    options.wrap_link =
        [&](int process, int peer,
            std::unique_ptr<Link> link) -> std::unique_ptr<Link> {
      if (process != 0) return link;
      return std::make_unique<MutatingLink>(std::move(link), seed * 64 + peer);
    };
    Scene scene(seed, std::move(options));
    scene.StartEverything();
    int quiet = 0;
    for (int step = 0; step < kStepsMax && !scene.AllReady(); ++step) {
      // When nothing moves any more, a rank waits for a dropped frame: then the
      // process dies, and the job with it.
      quiet = scene.Drive() ? 0 : quiet + 1;
      if (quiet == 50) scene.world().network().Lose(0);
      if (quiet == 100) scene.EndJob();
    }
    for (const auto& [event, name] : scene.events()) {
      ASSERT_TRUE(event.ready()) << name << " hangs";
    }
    while (scene.world().Progress()) {
    }
    if (HasFailure()) return;
  }
  std::printf("  %d ends of links lost, %d of them by a rule\n", lost, rules);
  EXPECT_GT(rules, static_cast<int>(Seeds(kSeeds).size()));
}

}  // namespace
}  // namespace troupe::comm
