#include "tools/trainer/terminal/progress.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/trainer/terminal/display.h"

namespace troupe::tools {
namespace {

Progress Halfway() {
  Progress p;
  p.step = 640;
  p.steps = 1280;
  p.epoch = 2;
  p.epochs = 4;
  p.loss = 0.12345;
  p.accuracy = 0.96521;
  p.samples_per_s = 12345.6;
  p.left_s = 42.4;
  return p;
}

TEST(FormatBar, FitsItsColumns) {
  EXPECT_EQ(FormatBar(Halfway(), 80),
            "epoch 2/4 [=====>    ]  640/1280 loss 0.1235 acc  96.5% "
            "12,345/s ETA 0:42");
  EXPECT_EQ(FormatBar(Halfway(), 120),
            "epoch 2/4 [==============>             ]  640/1280 loss 0.1235 "
            "acc  96.5% 12,345/s ETA 0:42");
  EXPECT_EQ(FormatBar(Halfway(), 72),
            "epoch 2/4  640/1280 loss 0.1235 acc  96.5% 12,345/s ETA 0:42");
}

// Parts of the line are left out as a whole, and the count of steps last.
TEST(FormatBar, NarrowTerminals) {
  for (const auto& [columns, bar] :
       {std::pair(60,
                  "epoch 2/4  640/1280 loss 0.1235 acc  96.5% 12,345/s ETA "
                  "0:42"),
        std::pair(59, "epoch 2/4  640/1280 loss 0.1235 acc  96.5% 12,345/s"),
        std::pair(50, "epoch 2/4  640/1280 loss 0.1235 acc  96.5%"),
        std::pair(41, "epoch 2/4  640/1280 loss 0.1235"),
        std::pair(30, "epoch 2/4  640/1280"),
        std::pair(19, "epoch 2/4  640/1280"), std::pair(18, " 640/1280"),
        std::pair(9, " 640/1280"), std::pair(5, " 640/"), std::pair(0, ""),
        std::pair(-1, "")}) {
    EXPECT_EQ(FormatBar(Halfway(), columns), bar) << columns;
  }
  Progress p = Halfway();
  p.step = p.steps = 2000;
  p.epoch = p.epochs = 500;
  EXPECT_EQ(FormatBar(p, 21), "2000/2000 loss 0.1235");
  EXPECT_EQ(FormatBar(p, 20), "2000/2000");
}

TEST(FormatBar, StaysWithinForTheLongestText) {
  Progress p = Halfway();
  p.step = p.steps = 1000000;
  p.epoch = p.epochs = 99;
  p.loss = 1.5e-10;
  p.accuracy = 1;
  p.samples_per_s = 1234567;
  p.left_s = 3599;
  const std::string bar = FormatBar(p, 100);
  EXPECT_LE(bar.size(), 100u) << bar;
  EXPECT_EQ(bar.substr(bar.size() - 9), "ETA 59:59");
}

TEST(FormatBar, FirstAndLastStep) {
  Progress p = Halfway();
  p.samples_per_s = 0;  // not known yet
  p.step = 0;
  EXPECT_EQ(FormatBar(p, 80),
            "epoch 2/4 [>         ]    0/1280 loss 0.1235 acc  96.5%");
  p.step = p.steps;
  p.accuracy = std::nullopt;
  EXPECT_EQ(FormatBar(p, 80), "epoch 2/4 [==========] 1280/1280 loss 0.1235");
}

TEST(FormatLine, Plain) {
  EXPECT_EQ(FormatLine(Halfway()),
            "step 640/1280  epoch 2  loss 0.1235  accuracy 96.52%  12,345 "
            "samples/s  ETA 0:42");
  Progress p = Halfway();
  p.samples_per_s = 0;
  p.accuracy = std::nullopt;
  EXPECT_EQ(FormatLine(p), "step 640/1280  epoch 2  loss 0.1235");
}

TEST(FormatLine, WithoutATargetThatCounts) {
  Progress p = Halfway();
  p.samples_per_s = 0;
  p.loss = p.accuracy.emplace(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(FormatLine(p), "step 640/1280  epoch 2  loss nan");
  EXPECT_EQ(FormatBar(p, 40), "epoch 2/4  640/1280 loss nan");
}

TEST(FormatLine, ADynamicLossScale) {
  Progress p = Halfway();
  p.samples_per_s = 0;
  p.accuracy = std::nullopt;
  p.loss_scale = 32768;
  EXPECT_EQ(FormatLine(p),
            "step 640/1280  epoch 2  loss 0.1235  loss scale 32768");
  p.skipped_steps = 1234;
  EXPECT_EQ(FormatLine(p),
            "step 640/1280  epoch 2  loss 0.1235  loss scale 32768  1,234 "
            "skipped");
}

TEST(Format, Numbers) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1,000");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
  EXPECT_EQ(FormatDuration(0), "0:00");
  EXPECT_EQ(FormatDuration(59.6), "1:00");
  EXPECT_EQ(FormatDuration(725), "12:05");
  EXPECT_EQ(FormatDuration(3723), "1:02:03");
  EXPECT_EQ(FormatDuration(1e9), ">100 h");
  EXPECT_EQ(FormatDuration(std::nan("")), ">100 h");
  EXPECT_EQ(FormatElapsed(4.24), "4.2 s");
  EXPECT_EQ(FormatElapsed(59.97), "1:00");
  EXPECT_EQ(FormatLoss(2.302585), "2.3026");
  EXPECT_EQ(FormatLoss(0), "0.0000");
  EXPECT_EQ(FormatLoss(0.000012), "1.20e-05");
  EXPECT_EQ(FormatLoss(123456), "1.23e+05");
  EXPECT_EQ(FormatLoss(std::nan("")), "nan");
  EXPECT_EQ(FormatLoss(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(RateMeter, LooksAtTheLastSeconds) {
  RateMeter rate;
  EXPECT_EQ(rate.SamplesPerSecond(), 0);
  rate.Add(1.0, 100);
  EXPECT_EQ(rate.SamplesPerSecond(), 100);
  rate.Add(1.0, 100);  // reported together
  EXPECT_EQ(rate.SamplesPerSecond(), 200);
  for (int second = 2; second <= 20; ++second) rate.Add(second, 1000);
  EXPECT_EQ(rate.SamplesPerSecond(), 1000);
}

class DisplayTest : public ::testing::Test {
 protected:
  std::string Shown() { return std::exchange(shown_, ""); }
  Display::Write Write() {
    return [this](absl::string_view text) {
      shown_.append(text.data(), text.size());
    };
  }
  std::string shown_;
};

TEST_F(DisplayTest, LinesEverySoManySteps) {
  Display display({/*bar=*/false, /*columns=*/{}, /*log_every=*/100}, Write());
  Progress p = Halfway();
  p.step = 639;
  display.ShowStep(p, 1);
  EXPECT_EQ(Shown(), "");
  p.step = 700;
  display.ShowStep(p, 1);
  EXPECT_EQ(Shown(), FormatLine(p) + "\n");
  p.step = p.steps = 701;
  display.ShowStep(p, 1);
  EXPECT_EQ(Shown(), FormatLine(p) + "\n") << "the last one always";
  display.Print("hello");
  display.End();
  EXPECT_EQ(Shown(), "hello\n");
}

TEST_F(DisplayTest, ABarIsDrawnOverAndOver) {
  int columns = 80;
  Display display({/*bar=*/true, [&] { return columns; }, /*log_every=*/100},
                  Write());
  const Progress p = Halfway();
  const std::string bar = FormatBar(p, 79);
  display.Print("before");
  EXPECT_EQ(Shown(), "before\n");
  display.ShowStep(p, 0.00);
  EXPECT_EQ(Shown(), "\r\x1b[K" + bar);
  display.ShowStep(p, 0.05);
  EXPECT_EQ(Shown(), "") << "ten times a second at most";
  display.ShowStep(p, 0.11);
  EXPECT_EQ(Shown(), "\r\x1b[K" + bar);
  columns = 60;
  display.ShowStep(p, 0.22);
  EXPECT_EQ(Shown(), "\r\x1b[K" + FormatBar(p, 59)) << "the window shrank";
  columns = 40;
  display.Print("after that");
  EXPECT_EQ(Shown(), "\r\x1b[Kafter that\n" + FormatBar(p, 39));
  columns = 80;
  display.ShowStep(p, 0.33);
  EXPECT_EQ(Shown(), "\r\x1b[K" + bar);
  display.Print("between");
  EXPECT_EQ(Shown(), "\r\x1b[Kbetween\n" + bar);
  display.End();
  display.Print("after");
  EXPECT_EQ(Shown(), "\nafter\n");
}

}  // namespace
}  // namespace troupe::tools
