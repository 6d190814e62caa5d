// The report reads everything that a run writes.

#include "tools/trainer/run/run_folder.h"

#include <memory>
#include <string>

#include "actors/tracing/trace.h"
#include "gtest/gtest.h"
#include "tests/base/fresh_path.h"
#include "tests/tools/report/made_run.h"
#include "tools/report/run_reader.h"

namespace troupe::tools {
namespace {

class RunFolderTest : public testing::Test {
 protected:
  // A run from one step to another, which evaluates at its end.
  void Run(std::int64_t first, std::int64_t last,
           const actors::ChromeTrace& trace) {
    RunFacts facts = Facts();
    facts.first_step = first;
    facts.steps = last;
    auto folder = RunFolder::Open(files_, dir_);
    ASSERT_TRUE(folder.ok()) << folder.status();
    ASSERT_TRUE((*folder)->Begin(facts, OneRank()).ok());
    for (std::int64_t step = first + 1; step <= last; ++step) {
      StepEntry entry;
      entry.step = step;
      entry.loss = 1.0 / static_cast<double>(step);
      ASSERT_TRUE((*folder)->OnStep(entry).ok());
    }
    EvaluationEntry evaluation;
    evaluation.step = last;
    ASSERT_TRUE((*folder)->OnEvaluation(evaluation).ok());
    ASSERT_TRUE((*folder)->End(trace).ok());
  }

  RunRecord Read() {
    auto run = ReadRun(files_, dir_);
    EXPECT_TRUE(run.ok()) << run.status();
    return run.ok() ? *std::move(run) : RunRecord();
  }

  base::PosixFileSystem files_;
  const std::string dir_ = base::FreshPath() + "/runs/a";
};

TEST_F(RunFolderTest, KeepsAboutAsManyStepsOfALongRunAsOfAShortOne) {
  const actors::ChromeTrace trace({});
  Run(0, 10'003, trace);
  const RunRecord run = Read();
  EXPECT_EQ(run.metrics.train.size(), 2001u);  // each fifth, and the last
  EXPECT_EQ(run.metrics.train[0].step, 5);
  EXPECT_EQ(run.metrics.train.back().step, 10'003);
  EXPECT_EQ(run.metrics.evaluation.size(), 1u);
  EXPECT_EQ(run.facts.steps, 10'003);
  EXPECT_EQ(run.plan.micro_batches, 2);
}

TEST_F(RunFolderTest, AResumedRunGoesOnAndANewOneReplaces) {
  const actors::ChromeTrace trace({});
  Run(0, 10, trace);
  Run(8, 12, trace);  // resumed from the checkpoint of step 8
  EXPECT_EQ(Read().metrics.train.size(), 12u);
  EXPECT_EQ(Read().metrics.evaluation.size(), 2u);
  Run(0, 3, trace);
  EXPECT_EQ(Read().metrics.train.size(), 3u);
}

TEST_F(RunFolderTest, ATimelineComesBackWithItsMemory) {
  actors::ChromeTrace trace({/*first_step=*/1, /*steps=*/1});
  const auto note = [&](actors::TracePhase phase, std::int64_t bytes) {
    actors::TraceEvent event;
    event.phase = phase;
    event.bytes = bytes;
    event.step = 4;
    event.name = "F1";
    trace.Record(event);
  };
  note(actors::TracePhase::kBegin, 100);
  note(actors::TracePhase::kEnd, 300);
  Run(0, 5, trace);
  const RunRecord run = Read();
  ASSERT_EQ(run.trace.bars.size(), 1u);
  EXPECT_EQ(run.trace.bars[0].kind, pipeline::ActionKind::kForward);
  EXPECT_EQ(run.trace.bars[0].index, 1);
  EXPECT_EQ(run.trace.bars[0].step, 5);
  ASSERT_EQ(run.trace.memory.size(), 2u);
  EXPECT_EQ(run.trace.memory[0].bytes, 100);
  EXPECT_EQ(run.trace.memory[1].bytes, 300);
  // The timeline of an earlier run is not taken for that of a later one.
  Run(0, 5, actors::ChromeTrace({}));
  EXPECT_TRUE(Read().trace.bars.empty());
}

}  // namespace
}  // namespace troupe::tools
