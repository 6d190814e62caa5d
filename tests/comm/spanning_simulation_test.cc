// Simulation tests of groups and parcels over simulated links: thousands of
// seeds with work of every kind in flight, and with delays, cuts, pauses, and
// processes that die at any frame. Everything ends, with the right bits or with
// an error that names the process that died.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/seeds.h"
#include "tests/comm/scene.h"

namespace troupe::comm {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kSeeds = 1500;
// Limit on the steps of a scene, far above what any needs: one that reaches it
// hangs.
constexpr int kStepsMax = 200000;

// Whether ranges lie in memory that all processes share.
class SpanningSimulation : public testing::TestWithParam<bool> {
 protected:
  static SimWorldOptions Options() {
    // All seeds share one memory, since each new range costs system calls.
    static const auto memory = std::make_shared<SharedMemory>();
    SimWorldOptions options;
    if (GetParam()) options.shared_memory = memory;
    return options;
  }
};

TEST_P(SpanningSimulation, EverythingInFlightEndsWithItsBits) {
  const std::vector<std::uint64_t> seeds = Seeds(kSeeds);
  std::size_t by_reference = 0;
  for (const std::uint64_t seed : seeds) {
    SCOPED_TRACE(ReplayCommand(seed));
    Scene scene(seed, Options());
    const int processes = scene.world().processes();
    const int a = scene.Choose(processes);
    const int b = (a + 1) % processes;
    const int paused = scene.Choose(processes);
    if (seed % 3 == 0) scene.world().network().Cut(a, b);
    if (seed % 4 == 0) scene.world().network().Pause(paused);
    scene.StartEverything();
    for (int step = 0; step < kStepsMax && !scene.AllReady(); ++step) {
      if (step == 200) scene.world().network().Heal(a, b);
      if (step == 400) scene.world().network().Resume(paused);
      scene.Drive();
    }
    for (const auto& [event, name] : scene.events()) {
      ASSERT_TRUE(event.ready()) << name << " hangs";
      ASSERT_TRUE(event.status().ok()) << name << ": " << event.status();
    }
    while (scene.world().Progress()) {
    }
    scene.ExpectResults();
    for (int p = 0; p < processes; ++p) {
      by_reference += scene.world().fabric(p).by_reference();
    }
    if (HasFailure()) return;
  }
  // A single replayed seed may have ended before any memory was lent.
  if (seeds.size() > 1) {
    EXPECT_EQ(by_reference > seeds.size() / 2, GetParam()) << by_reference;
  }
}

TEST_P(SpanningSimulation, ALostProcessIsNamedByWhateverCannotEnd) {
  const std::vector<std::uint64_t> seeds = Seeds(kSeeds);
  std::size_t failed = 0;
  for (const std::uint64_t seed : seeds) {
    SCOPED_TRACE(ReplayCommand(seed));
    Scene scene(seed, Options());
    const int victim = scene.Choose(scene.world().processes());
    const int frame = scene.Choose(120);
    scene.StartEverything();
    bool lost = false;
    for (int step = 0; step < kStepsMax && !scene.AllReady(); ++step) {
      if (!lost &&
          static_cast<int>(scene.world().network().delivered()) >= frame) {
        scene.world().network().Lose(victim);
        lost = true;
      }
      scene.Drive();
    }
    for (const auto& [event, name] : scene.events()) {
      ASSERT_TRUE(event.ready()) << name << " hangs";
      if (event.status().ok()) continue;
      ++failed;
      // The victim itself sees its links to its peers end.
      EXPECT_THAT(std::string(event.status().message()), HasSubstr("is lost: "))
          << name;
      EXPECT_THAT(std::string(event.status().message()),
                  HasSubstr(absl::StrCat("process ", victim, " died")))
          << name;
    }
    if (HasFailure()) return;
  }
  // If too few seeds fail, the test exercises nothing. A single replayed seed
  // may pass.
  if (seeds.size() > 1) {
    EXPECT_GT(failed, seeds.size() / 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Memory, SpanningSimulation, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "shared" : "ordinary";
                         });

}  // namespace
}  // namespace troupe::comm
