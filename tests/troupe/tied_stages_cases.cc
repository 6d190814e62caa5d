// A pipeline in a loop of one's own, two stages of which share a parameter.

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "nn/modules/embedding.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "nn/ops/loss.h"
#include "troupe/pipeline_parallel.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

// A weight that the first and the last stage share stays one weight.
TEST(PipelineParallelTest, StagesMayShareAParameter) {
  const auto run = [](int pp, std::vector<pipeline::Cut> cuts,
                      std::vector<double>* losses) {
    SpawnOptions spawn;
    spawn.ranks = pp;
    spawn.mesh = pipeline::Mesh(/*dp=*/1, pp);
    const absl::Status status = Spawn(
        [=](Rank& rank) {
          PipelineOptions options;
          options.cuts = cuts;
          options.micro_batches = 4;
          options.batch = {8, 6};
          options.dtype = DType::kI64;
          PipelineParallel model(
              rank,
              [] {
                auto model = std::make_unique<nn::Sequential>();
                auto& tokens = model->AppendNamed<nn::Embedding>("wte", 48, 8);
                model->AppendNamed<nn::Linear>("fc", 8, 8);
                model->AppendNamed<nn::Linear>("head", 8, 48)
                    .TieParameter("weight", tokens, "weight");
                return model;
              },
              options);
          nn::SgdOptions rule{/*lr=*/0.1, /*momentum=*/0.9};
          rule.common.clip_grad_norm = 0.5;
          Sgd sgd(model, rule);
          const Var x = rank.Arange(0, 48, 1, DType::kI64).View({8, 6});
          for (int step = 0; step < 4; ++step) {
            const double loss = model.Run(x, x, nn::ops::CrossEntropyLoss());
            sgd.Step();
            if (rank.number() == 0) losses->push_back(loss);
          }
        },
        spawn);
    EXPECT_TRUE(status.ok()) << status;
  };
  std::vector<double> whole, cut;
  run(1, {}, &whole);
  run(2, {"head"}, &cut);
  ASSERT_EQ(whole.size(), 4u);
  EXPECT_LT(whole[3], whole[0]);
  EXPECT_EQ(cut, whole);
}

}  // namespace
}  // namespace troupe
