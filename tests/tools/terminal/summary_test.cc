#include "tools/trainer/terminal/summary.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe::tools {
namespace {

TEST(FormatEvaluation, WithAndWithoutAccuracy) {
  EXPECT_EQ(FormatEvaluation({640, 0.0712, 0.979}, 2048),
            "after step 640: test loss 0.0712, accuracy 97.90% of 2,048 "
            "samples");
  EXPECT_EQ(FormatEvaluation({640, 0.0712, std::nullopt}, 256),
            "after step 640: test loss 0.0712 of 256 samples");
}

TEST(FormatEvaluation, NoSampleThatCounts) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string none =
      ": no test sample counts, since each has a target that is ignored or a "
      "class of weight 0";
  EXPECT_EQ(FormatEvaluation({640, nan, nan}, 1), "after step 640" + none);
  EXPECT_EQ(FormatEvaluation({7, nan, nan}, 0), "after step 7" + none);
  EXPECT_EQ(FormatEvaluation({7, nan, std::nullopt}, 0), "after step 7" + none);
  // A loss that is not finite is another matter.
  EXPECT_EQ(FormatEvaluation({7, nan, 0.1}, 20),
            "after step 7: test loss nan, accuracy 10.00% of 20 samples");
  Summary s;
  s.steps = 2;
  s.evaluation = TestResult{2, nan, nan};
  s.files.has_folder = true;
  EXPECT_EQ(FormatSummary(s), "done: 2 steps in 0.0 s\ntest" + none +
                                  "\nno checkpoint written: there was no step "
                                  "to save\n");
}

TEST(FormatSummary, Done) {
  Summary s;
  s.steps = 1280;
  s.samples = 81920;
  s.seconds = 12.34;
  s.evaluation = TestResult{1280, 0.0712, 0.979};
  s.files.checkpoint = "checkpoints/a/step-00001280";
  s.next.again = "trainer train --config=a.toml";
  s.next.longer = "trainer train --config=a.toml --set train.epochs=8";
  EXPECT_EQ(FormatSummary(s),
            "done: 1,280 steps in 12.3 s (6,638 samples/s)\n"
            "test accuracy: 97.90% (loss 0.0712)\n"
            "checkpoint: checkpoints/a/step-00001280\n"
            "to go on: trainer train --config=a.toml --set train.epochs=8 "
            "--resume\n");
}

TEST(FormatSummary, EndedEarly) {
  Summary s;
  s.steps = 640;
  s.samples = 40960;
  s.seconds = 10;
  s.peak_bytes = std::int64_t{3} << 19;
  s.converged = "eval_loss has not improved in 2 evaluations";
  s.evaluation = TestResult{640, 0.0812, std::nullopt};
  s.best = TestResult{400, 0.0712, std::nullopt};
  s.files.best_checkpoint = "c/best";
  s.files.metrics = {"runs/a.jsonl", "runs/a"};
  s.files.checkpoint = "c/step-00000640";
  s.next.longer = "trainer train --config=a.toml";
  s.files.run_dir = "runs/b";
  EXPECT_EQ(FormatSummary(s),
            "done: 640 steps in 10.0 s (4,096 samples/s, at most 1.5 MiB a "
            "rank)\n"
            "ended early: eval_loss has not improved in 2 evaluations\n"
            "test loss: 0.0812\n"
            "best: test loss 0.0712 after step 400, c/best\n"
            "metrics: runs/a.jsonl, runs/a\n"
            "run folder: runs/b (as a page: trainer report runs/b)\n"
            "checkpoint: c/step-00000640\n"
            "to go on: trainer train --config=a.toml --resume\n");
}

TEST(FormatSummary, StoppedWithoutCheckpoint) {
  Summary s;
  s.first_step = 100;
  s.steps = 110;
  s.samples = 640;
  s.seconds = 64;
  s.stopped = true;
  s.files.trace = "t.json";
  s.next.again = "trainer train --config=a.toml --ranks=2";
  s.next.kept = s.next.again + " --set checkpoint.dir=checkpoints";
  s.next.longer = "not this one";
  EXPECT_EQ(FormatSummary(s),
            "stopped: 10 steps in 1:04 (10 samples/s)\n"
            "trace: t.json (open it at ui.perfetto.dev)\n"
            "no checkpoint written; to keep the model: trainer train "
            "--config=a.toml --ranks=2 --set checkpoint.dir=checkpoints\n");
  s.files.checkpoint = "c/step-00000110";
  s.files.trace_empty = true;
  EXPECT_EQ(FormatSummary(s),
            "stopped: 10 steps in 1:04 (10 samples/s)\n"
            "trace: t.json is empty, the run ended before trace.first_step; "
            "add --set trace.first_step=1\n"
            "checkpoint: c/step-00000110\n"
            "to go on: trainer train --config=a.toml --ranks=2 --resume\n");
  s.next.where = "on each node, as before";
  EXPECT_THAT(FormatSummary(s),
              testing::HasSubstr("\nto go on, on each node, as before: trainer "
                                 "train --config=a.toml"));
}

TEST(FormatSummary, AnEvaluationBeforeTheEndSaysWhenItWas) {
  Summary s;
  s.steps = 12345;
  s.stopped = true;
  s.evaluation = TestResult{12000, 0.0712, std::nullopt};
  s.files.checkpoint = "c/step-00012345";
  s.next.again = "trainer train --config=a.toml";
  EXPECT_EQ(FormatSummary(s),
            "stopped: 12,345 steps in 0.0 s\n"
            "test loss after step 12,000: 0.0712\n"
            "checkpoint: c/step-00012345\n"
            "to go on: trainer train --config=a.toml --resume\n");
  s.evaluation->accuracy = 0.979;
  EXPECT_THAT(FormatSummary(s),
              testing::HasSubstr(
                  "\ntest accuracy after step 12,000: 97.90% (loss 0.0712)\n"));
}

TEST(FormatSummary, NothingToDo) {
  Summary s;
  s.first_step = s.steps = 100;
  s.files.has_folder = true;
  s.files.resumed_from = "c/step-00000100";
  s.next.longer = "trainer train --config=a.toml --set train.steps=200";
  EXPECT_EQ(FormatSummary(s),
            "done: 0 steps in 0.0 s\n"
            "checkpoint: c/step-00000100, from before this run\n"
            "to go on: trainer train --config=a.toml --set train.steps=200 "
            "--resume\n");
}

TEST(FormatSummary, StoppedBeforeAnyStep) {
  Summary s;
  s.files.has_folder = true;
  s.stopped = true;
  EXPECT_EQ(FormatSummary(s),
            "stopped: 0 steps in 0.0 s\n"
            "no checkpoint written: there was no step to save\n");
}

}  // namespace
}  // namespace troupe::tools
