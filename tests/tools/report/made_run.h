// Traces and plans made by hand, for tests of the report.
//
//   MadeRun run(/*dp=*/1, /*pp=*/2);
//   run.Add(0, "F0", 0, 10).Add(1, "F0", 12, 22);
//   run.AddComm(0, "AR0", 100, 104);
//   const RunTimeline timeline(run.trace, run.shape);

#ifndef TESTS_TOOLS_REPORT_MADE_RUN_H_
#define TESTS_TOOLS_REPORT_MADE_RUN_H_

#include <string>
#include <utility>

#include "nn/tensor/dtype.h"
#include "nn/tensor/shape.h"
#include "pipeline/plan.h"
#include "tools/report/run_facts.h"
#include "tools/report/run_shape.h"
#include "tools/report/trace_reader.h"

namespace troupe::tools {

// A plan of `pp` stages, one a rank, without tables.
inline pipeline::Plan PlanOf(int dp, int pp) {
  pipeline::Plan plan;
  plan.mesh = pipeline::Mesh(dp, pp);
  plan.stages.resize(pp);
  for (int stage = 0; stage < pp; ++stage)
    plan.stages[stage].place = {stage, 0};
  plan.ranks.resize(pp);
  return plan;
}

// Returns the facts in run.json of a run of 20 steps.
inline RunFacts Facts() {
  RunFacts facts;
  facts.version = "0.1.0";
  facts.model = "mlp";
  facts.data = "synthetic";
  facts.schedule = "auto";
  facts.optimizer = "sgd";
  facts.precision = "f32";
  facts.started = "2026-01-02T03:04:05Z";
  facts.parameters = 1234;
  facts.steps = 20;
  facts.memory_expected = 4096;
  facts.costs.stages.resize(1);
  return facts;
}

// A plan that is complete: two micro-batches on one rank.
inline pipeline::Plan OneRank() {
  pipeline::Plan plan = PlanOf(1, 1);
  plan.global_batch_size = 2;
  plan.micro_batches = 2;
  pipeline::StagePlan& stage = plan.stages[0];
  stage.input = stage.output = nn::Shape({1, 4});
  stage.parameters = {"weight"};
  stage.parameter_elems = {4};
  stage.parameter_dtypes = {nn::DType::kF32};
  stage.buckets = {{0}};
  plan.ranks[0].train = pipeline::AddReductions(pipeline::DataParallelTable(2),
                                                /*buckets=*/1, {});
  plan.ranks[0].evaluate = pipeline::ParseTable("F0").value();
  return plan;
}

// Bars of step 7, in microseconds.
struct MadeRun {
  MadeRun(int dp, int pp) : MadeRun(PlanOf(dp, pp)) {}
  explicit MadeRun(pipeline::Plan of) : plan(std::move(of)), shape(plan) {}
  MadeRun(const MadeRun&) = delete;  // `shape` refers to `plan`
  MadeRun& operator=(const MadeRun&) = delete;

  MadeRun& Add(int rank, const std::string& word, double begin, double end,
               BarTrack track = BarTrack::kCompute) {
    const pipeline::Action action =
        pipeline::ParseTable(word).value().actions[0];
    Bar bar;
    bar.rank = rank;
    bar.track = track;
    bar.kind = action.kind;
    bar.chunk = action.chunk;
    bar.index = action.index;
    bar.step = 7;
    bar.begin = begin;
    bar.end = end;
    trace.bars.push_back(bar);
    return *this;
  }
  MadeRun& AddComm(int rank, const std::string& word, double begin,
                   double end) {
    return Add(rank, word, begin, end, BarTrack::kComm);
  }

  pipeline::Plan plan;
  RunShape shape;
  RunTrace trace;
};

// Two stages with two micro-batches, under 1F1B.
struct TwoStages : MadeRun {
  TwoStages() : MadeRun(/*dp=*/1, /*pp=*/2) {
    plan.ranks[0].train = pipeline::ParseTable("F0 F1 B0 B1").value();
    plan.ranks[1].train = pipeline::ParseTable("F0 B0 F1 B1").value();
    Add(0, "F0", 0, 10).Add(0, "F1", 10, 20);
    Add(0, "B0", 50, 70).Add(0, "B1", 80, 100).Add(0, "UP0", 106, 110);
    Add(1, "F0", 12, 22).Add(1, "B0", 22, 46);
    Add(1, "F1", 46, 56).Add(1, "B1", 56, 78).Add(1, "UP0", 104, 108);
    AddComm(0, "LR", 20, 60).AddComm(1, "LR", 56, 60);
    AddComm(0, "AR0", 100, 104).AddComm(1, "AR0", 78, 84);
  }
};

// Two replicas; the second one comes late.
struct TwoReplicas : MadeRun {
  TwoReplicas() : MadeRun(/*dp=*/2, /*pp=*/1) {
    Add(0, "F0", 0, 10).Add(0, "B0", 10, 40).Add(0, "UP0", 52, 55);
    Add(1, "F0", 0, 14).Add(1, "B0", 14, 48).Add(1, "UP0", 52, 56);
    AddComm(0, "AR0", 30, 52).AddComm(1, "AR0", 42, 52);
  }
};

}  // namespace troupe::tools

#endif  // TESTS_TOOLS_REPORT_MADE_RUN_H_
