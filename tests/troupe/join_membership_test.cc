#include "troupe/internal/join_membership.h"

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/status_error.h"
#include "gtest/gtest.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

class NoObserver : public CallObserver {
 public:
  absl::Status OnForward(ModelCore&, const Tensor&) override {
    return absl::OkStatus();
  }
  void AfterForward(ModelCore&, const Tensor&) override {}
  absl::Status OnBackward(absl::Span<ModelCore* const>,
                          const Tensor&) override {
    return absl::OkStatus();
  }
};

TEST(JoinMembershipTest, MultipliesGradientsWhileItLasts) {
  const auto program = [](Rank& rank) {
    nn::BackwardRoot root;
    root.scale = 3;
    root.seed = rank.Full({1}, 5);
    const auto scaled = [&](const JoinMembership& membership) {
      return base::OrThrow(membership.Scaled(rank.context(), root));
    };
    NoObserver observer;
    JoinMembership membership;
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(membership.observer(), nullptr);
      EXPECT_EQ(membership.active().first, 0);
      EXPECT_TRUE(membership.active().self);
      EXPECT_EQ(scaled(membership).scale, 3);
      EXPECT_EQ(scaled(membership).seed.raw(), root.seed.raw());

      membership.Enter(&observer);
      EXPECT_EQ(membership.observer(), &observer);
      membership.Follow({/*first=*/1, /*all_per_active=*/2, /*self=*/false},
                        /*scales_gradients=*/false);
      EXPECT_EQ(membership.active().first, 1);
      EXPECT_FALSE(membership.active().self);
      EXPECT_EQ(scaled(membership).scale, 3);
      membership.Follow({1, 2, false}, /*scales_gradients=*/true);
      EXPECT_EQ(scaled(membership).scale, 6);
      EXPECT_EQ(*scaled(membership).seed.data<float>(), 10);
      membership.Leave();
    }
  };
  EXPECT_EQ(Spawn(program, /*ranks=*/1), absl::OkStatus());
}

}  // namespace
}  // namespace troupe
