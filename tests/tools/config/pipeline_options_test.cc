// Tests of the pipeline keys of section [mesh].

#include "tools/trainer/config/pipeline_options.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/file_system.h"
#include "data/registry.h"
#include "gtest/gtest.h"
#include "tests/tools/config/config_fixture.h"

namespace troupe::tools {
namespace {

// Returns settings for two stages of LeNet, eight micro-batches, and `more`.
Settings TwoStages(const Settings& more = {}) {
  Settings settings = {Set("train.steps", "10"), Set("mesh.pp", "2"),
                       Set("train.micro_batch_size", "8")};
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

std::string ErrorOfSettings(const Settings& settings) {
  base::PosixFileSystem files;
  return std::string(LoadConfig(files, "", settings).status().message());
}

absl::StatusOr<pipeline::PlanOptions> OptionsOf(const Settings& settings) {
  base::PosixFileSystem files;
  const auto loaded = LoadConfig(files, "", settings);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  if (!loaded.ok()) return loaded.status();
  return PipelineOptions(*loaded, *data::KnownSampleSpec(loaded->config.data));
}

TEST(PipelineOptions, OneFOneBIsTheDefault) {
  const auto options = OptionsOf(TwoStages());
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->schedule(options->mesh, 0, 8).ToString(),
            "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7");
  EXPECT_EQ(options->placement, pipeline::LoopedPlacement(2, 1));
  EXPECT_EQ(options->cuts.size(), 1u);
  EXPECT_EQ(options->dispatch, pipeline::Dispatch::kArrival);
  // Without a pipeline there is none.
  const auto alone = OptionsOf({Set("train.steps", "10")});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->schedule, nullptr);
}

TEST(PipelineOptions, SchedulesByName) {
  for (const std::string& name : ScheduleChoices()) {
    if (name == "interleaved_1f1b" || name == "breadth_first") continue;
    EXPECT_EQ(ErrorOfSettings(TwoStages({Set("mesh.schedule", name)})), "")
        << name;
  }
  const auto v = OptionsOf(TwoStages({Set("mesh.schedule", "zb_v")}));
  ASSERT_TRUE(v.ok()) << v.status();
  EXPECT_EQ(v->placement, pipeline::VPlacement(2));
  EXPECT_EQ(v->cuts.size(), 3u);
  const auto looped = OptionsOf(TwoStages({Set("mesh.virtual_stages", "2")}));
  ASSERT_TRUE(looped.ok()) << looped.status();
  EXPECT_EQ(looped->placement, pipeline::LoopedPlacement(2, 2));
  EXPECT_EQ(OptionsOf(TwoStages({Set("mesh.strict_order", "true")}))->dispatch,
            pipeline::Dispatch::kStrict);
}

TEST(PipelineOptions, Balance) {
  const auto cuts = [](const char* balance) {
    return OptionsOf(TwoStages({Set("mesh.balance", balance)}))->cuts;
  };
  EXPECT_NE(cuts("flops"), cuts("parameters"));
  EXPECT_EQ(cuts("layers"), (std::vector<pipeline::Cut>{"6"}));
  // Cuts that are set are kept.
  EXPECT_EQ(OptionsOf(TwoStages({Set("mesh.cuts", "3")}))->cuts,
            (std::vector<pipeline::Cut>{3}));
}

// Each layer of LeNet takes a second forward and two backward, except `dear`.
pipeline::ModelCosts CostsOfLayers(int dear) {
  pipeline::ModelCosts costs;
  for (int i = 0; i < 12; ++i) {
    pipeline::UnitCosts& unit = costs.units.emplace_back();
    unit.path = absl::StrCat(i);
    unit.costs = {1, 1, 1, /*activation=*/10};
    if (i == dear) unit.costs.forward = 10;
    unit.held_bytes = 100;
  }
  return costs;
}

TEST(PipelineOptions, MeasuredCuts) {
  const Settings settings = TwoStages(
      {Set("mesh.balance", "measured"), Set("mesh.memory_limit", "1000")});
  base::PosixFileSystem files;
  const auto loaded = LoadConfig(files, "", settings);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE(IsPipelineOpen(loaded->config));
  const data::SampleSpec sample = *data::KnownSampleSpec(loaded->config.data);
  // Before costs are measured, the cuts are those of FLOPs.
  pipeline::PlanOptions plan = *PipelineOptions(*loaded, sample);
  EXPECT_EQ(plan.cuts,
            OptionsOf(TwoStages({Set("mesh.balance", "flops")}))->cuts);
  const actors::OpenPipeline open = OpenPipelineOf(*loaded, sample);
  EXPECT_FALSE(open.chooses_schedule);
  // 12 layers take 3 seconds each, and one of them 9 more.
  ASSERT_TRUE(open.set(CostsOfLayers(/*dear=*/2), plan).ok());
  EXPECT_EQ(plan.cuts, (std::vector<pipeline::Cut>{"5"}));
  ASSERT_TRUE(open.set(CostsOfLayers(/*dear=*/9), plan).ok());
  EXPECT_EQ(plan.cuts, (std::vector<pipeline::Cut>{"8"}));
  // Rank 0 keeps two micro-batches: 8 layers take 8 * 120 bytes.
  pipeline::ModelCosts large = CostsOfLayers(/*dear=*/9);
  for (pipeline::UnitCosts& unit : large.units) unit.held_bytes *= 2;
  EXPECT_EQ(open.set(large, plan),
            absl::InvalidArgumentError(
                "--set mesh.memory_limit: no cuts keep what a rank holds "
                "within 1 KiB: at best, pp 0 holds 1.3 KiB, which is 320 "
                "bytes more; raise the limit, or take more stages"));
}

TEST(PipelineOptions, MeasuredSchedules) {
  const Settings settings = TwoStages({Set("mesh.balance", "measured"),
                                       Set("mesh.schedule", "search"),
                                       Set("mesh.virtual_stages", "1")});
  base::PosixFileSystem files;
  const auto loaded = LoadConfig(files, "", settings);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const data::SampleSpec sample = *data::KnownSampleSpec(loaded->config.data);
  const actors::OpenPipeline open = OpenPipelineOf(*loaded, sample);
  EXPECT_TRUE(open.chooses_schedule);
  pipeline::PlanOptions plan = *PipelineOptions(*loaded, sample);
  pipeline::ModelCosts costs = CostsOfLayers(/*dear=*/-1);
  // Whole backwards that take next to nothing are all that there is.
  for (pipeline::UnitCosts& unit : costs.units) unit.costs.backward = 0.25;
  ASSERT_TRUE(open.set(costs, plan).ok());
  EXPECT_EQ(plan.cuts, (std::vector<pipeline::Cut>{"6"}));
  for (int pp = 0; pp < 2; ++pp) {
    const pipeline::StepTable table = plan.schedule(plan.mesh, pp, 8);
    EXPECT_EQ(table.Find(pipeline::ActionKind::kBackwardInputs, 0), -1)
        << table.ToString();
  }
}

TEST(PipelineOptions, WrittenCutsNeedNoMeasuring) {
  base::PosixFileSystem files;
  const auto loaded = LoadConfig(
      files, "",
      TwoStages({Set("mesh.balance", "measured"), Set("mesh.cuts", "3")}));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_FALSE(IsPipelineOpen(loaded->config));
}

TEST(PipelineOptions, WhatDoesNotFit) {
  EXPECT_EQ(
      ErrorOfSettings({Set("train.steps", "1"), Set("mesh.schedule", "1f1b")}),
      "--set mesh.schedule: mesh.schedule is for pipelines, and mesh.pp "
      "is 1; remove mesh.schedule, or set mesh.pp to 2 or more");
  EXPECT_EQ(ErrorOfSettings(TwoStages(
                {Set("mesh.schedule", "dualpipe_v"), Set("mesh.pp", "8")})),
            "--set mesh.schedule: schedule: dualpipe_v takes at least 2 pp = "
            "16 micro-batches, and there are 8; make them smaller");
  EXPECT_EQ(ErrorOfSettings(TwoStages({Set("mesh.schedule", "search"),
                                       Set("mesh.activation_limit", "100")})),
            "--set mesh.activation_limit: schedule: no order of 8 "
            "micro-batches keeps the activations of a rank within 100; "
            "raise the limit, or make micro-batches smaller");
  EXPECT_EQ(ErrorOfSettings(TwoStages({Set("mesh.pp", "13")})),
            "--set mesh.pp: the model has 12 layers in Sequentials, too few "
            "for 13 stages; take fewer");
}

// The search leaves out numbers of chunks for which the model has too few
// layers, or the configuration other cuts.
TEST(PipelineOptions, SearchesAmongChunksThatFit) {
  const auto stages = [](const Settings& settings) {
    const auto options = OptionsOf(settings);
    return options.ok() ? options->placement.size() : 0;
  };
  const Settings three =
      TwoStages({Set("mesh.schedule", "search"), Set("data.kind", "synthetic"),
                 Set("model.layers", "linear 8,relu,linear 10")});
  EXPECT_EQ(stages(three), 2u);
  Settings all = three;
  all.push_back(Set("mesh.pp", "3"));
  EXPECT_EQ(stages(all), 3u);
  EXPECT_EQ(stages(TwoStages(
                {Set("mesh.schedule", "search"), Set("mesh.cuts", "6")})),
            2u);
  EXPECT_EQ(stages(TwoStages(
                {Set("mesh.schedule", "search"), Set("mesh.cuts", "2,5,8")})),
            4u);
  EXPECT_EQ(ErrorOfSettings(TwoStages(
                {Set("mesh.schedule", "search"), Set("mesh.cuts", "2,5")})),
            "--set mesh.cuts: mesh.pp = 2 stages need 1 cuts, mesh.cuts has 2; "
            "give as many, or remove mesh.cuts");
  Settings few = three;
  few.push_back(Set("mesh.pp", "4"));
  EXPECT_EQ(ErrorOfSettings(few),
            "--set mesh.pp: the model has 3 layers in Sequentials, too few for "
            "4 stages; take fewer");
  Settings said = three;
  said.push_back(Set("mesh.virtual_stages", "2"));
  EXPECT_EQ(ErrorOfSettings(said),
            "--set mesh.pp: the model has 3 layers in Sequentials, too few for "
            "4 stages; take fewer");
}

TEST(PipelineOptions, AFileOfTables) {
  base::PosixFileSystem files;
  const std::string path = absl::StrCat(testing::TempDir(), "/grid.txt");
  const auto with = [&](const std::string& grid) {
    EXPECT_TRUE(base::WriteWholeFile(files, path, grid).ok());
    return TwoStages(
        {Set("mesh.schedule_file", path), Set("train.micro_batch_size", "32")});
  };
  const auto options =
      OptionsOf(with("# two\nrank 0: F0 F1 I0 W0 B1\n\nrank 1: F0 B0 F1 B1"));
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->schedule(options->mesh, 0, 2).ToString(),
            "F0 F1 I0 W0 B1");
  const std::string place = "--set mesh.schedule_file: ";
  EXPECT_EQ(
      ErrorOfSettings(with("rank 0: F0 B0 F1 B1\n")),
      absl::StrCat(place, path,
                   ": schedule: there are 1 tables where the mesh has pp = 2"));
  EXPECT_EQ(ErrorOfSettings(with("rank 0: F0 X\n")),
            absl::StrCat(place, path,
                         ": line 1: \"X\" is no action; write F0, B0, AR0, "
                         "..."));
  EXPECT_EQ(ErrorOfSettings(with("rank 1: F0\n")),
            absl::StrCat(place, path, ": line 1: must begin with \"rank 0:\""));
  EXPECT_EQ(ErrorOfSettings(TwoStages({Set("mesh.schedule_file", "/no/such")})),
            absl::StrCat(place,
                         "cannot read /no/such: No such file or directory; "
                         "check the path"));
}

}  // namespace
}  // namespace troupe::tools
