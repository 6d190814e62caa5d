// DDP beside PyTorch's, on two ranks: losses, parameters and buffers after 20
// steps (tools/golden/make_ddp.py has the same network, cases and rules).

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/modules/batch_norm.h"
#include "nn/modules/freeze.h"
#include "tests/golden/golden_file.h"
#include "tests/nn/testing/tensor_values.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using nlohmann::json;

constexpr int kParityRanks = 2;

struct Network : nn::Net {
  explicit Network(bool has_norm)
      : norm(has_norm ? &Add<nn::BatchNorm1d>("norm", 8) : nullptr) {}

  Var Forward(Var x) override {
    x = first(x).Relu();
    if (norm != nullptr) x = (*norm)(x);
    x = middle(x);
    if (use_extra) x = x + extra(x.Relu());
    return last(x.Relu());
  }

  bool use_extra = true;
  nn::Linear& first = Add<nn::Linear>("first", 6, 8);
  nn::BatchNorm1d* const norm;
  nn::Linear& middle = Add<nn::Linear>("middle", 8, 8);
  nn::Linear& extra = Add<nn::Linear>("extra", 8, 8);
  nn::Linear& last = Add<nn::Linear>("last", 8, 4);
};

bool UsesExtra(const json& example, int rank, int step) {
  const std::string used = example.value("used", "always");
  if (used == "rank 0") return rank == 0;
  if (used == "rank 0 and rank 1 in turn") return step % 2 == rank;
  if (used == "even steps") return step % 2 == 0;
  return true;
}

std::unique_ptr<Network> MakeNetwork(const json& example) {
  auto network = std::make_unique<Network>(example.contains("norm"));
  if (example.value("norm", "") == "sync") network->norm->set_sync_axis("dp");
  if (example.contains("frozen")) {
    const std::string frozen = example["frozen"];
    EXPECT_TRUE(nn::FreezeParameters(*network, {frozen + ".*"}).ok());
  }
  return network;
}

void FillWith(const Tensor& tensor, const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (tensor.dtype() == DType::kI64) {
      tensor.data<std::int64_t>()[i] = static_cast<std::int64_t>(values[i]);
    } else {
      tensor.data<float>()[i] = static_cast<float>(values[i]);
    }
  }
}

// Values of a rank at its end, by the names of the golden file.
using Results = std::map<std::string, std::vector<double>>;

void Train(Rank& rank, const json& spec, const json& example,
           const std::string& rule, Results& results) {
  auto model = rank.Place(MakeNetwork(example));
  DDPOptions options;
  options.first_bucket_mb = 0.0002;  // several buckets
  options.bucket_cap_mb = 0.0004;
  options.static_graph = example.contains("static_graph");
  if (example.contains("bf16_hook")) options.reduction_dtype = DType::kBF16;
  DDP ddp(model, options);
  for (const nn::Parameter* parameter : ddp.Parameters()) {
    FillWith(parameter->value, nn::GoldenInput("ddp/" + parameter->name,
                                               parameter->value.numel(), 0.5));
  }
  std::optional<Optimizer> optimizer;
  if (rule == "sgd") {
    SgdOptions sgd{/*lr=*/0.05, /*momentum=*/0.9};
    sgd.weight_decay = 0.01;
    optimizer.emplace(Sgd(ddp, sgd));
  } else {
    AdamOptions adamw = nn::AdamWDefaults();
    adamw.lr = 0.01;
    optimizer.emplace(Adam(ddp, adamw));
  }
  const int batch = spec["batch"];
  const int micro_batches = example.value("micro_batches", 1);
  const std::string own = absl::StrCat("rank", rank.number(), "/");
  const auto backward = [&](int number) {
    const std::string suffix = absl::StrCat(rank.number(), "/", number);
    Var x = rank.Zeros({batch, 6}), y = rank.Zeros({batch}, DType::kI64);
    FillWith(x, nn::GoldenInput("ddp/x/" + suffix, x.numel(), 1));
    FillWith(y, nn::GoldenLabels("ddp/y/" + suffix, batch, 4,
                                 /*ignore_fifth=*/false));
    const Var loss = nn::CrossEntropy(ddp(x), y);
    (loss.Mean() / micro_batches).Backward();
    results[own + "losses"].push_back(loss.item());
  };
  for (int step = 0; step < spec["steps"]; ++step) {
    model->use_extra = UsesExtra(example, rank.number(), step);
    optimizer->ZeroGrad();
    int number = step * micro_batches;
    {
      auto unsynced = ddp.NoSync();
      for (int m = 1; m < micro_batches; ++m) backward(number++);
    }
    backward(number);
    optimizer->Step();
  }
  for (const nn::Parameter* parameter : ddp.Parameters()) {
    results[parameter->name] = nn::ValuesOf(parameter->value);
  }
  for (const nn::Buffer* buffer : ddp.module().Buffers()) {
    results[own + buffer->name] = nn::ValuesOf(buffer->value);
  }
}

void ExpectParity(const std::string& name, double bound = 1e-6) {
  const nn::GoldenFile golden = *nn::GoldenFile::Open("ddp");
  const json& spec = golden.spec();
  const json* example = nullptr;
  for (const json& each : spec["cases"]) {
    if (each["name"] == name) example = &each;
  }
  ASSERT_NE(example, nullptr) << name;
  for (const std::string rule : {"sgd", "adamw"}) {
    std::array<Results, kParityRanks> results;
    const absl::Status status = Spawn(
        [&](Rank& rank) {
          Train(rank, spec, *example, rule, results[rank.number()]);
        },
        kParityRanks);
    ASSERT_TRUE(status.ok()) << status;
    for (const Results& of_rank : results) {
      for (const auto& [tensor, values] : of_rank) {
        const std::string key = absl::StrCat(name, "/", rule, "/", tensor);
        ASSERT_TRUE(golden.Has(key)) << key;
        EXPECT_TRUE(nn::Near(values, golden.Values(key), bound)) << key;
      }
    }
  }
}

TEST(DdpParityTest, Plain) { ExpectParity("plain"); }

// The rank that has not used a layer adds zeros: the gradient is halved.
TEST(DdpParityTest, UnusedOnOneRank) { ExpectParity("unused_on_one_rank"); }
TEST(DdpParityTest, UnusedInTurn) { ExpectParity("unused_in_turn"); }

// One that no rank has used has no gradient: neither decay nor momentum.
TEST(DdpParityTest, UnusedEverywhere) { ExpectParity("unused_everywhere"); }

TEST(DdpParityTest, NoSync) { ExpectParity("no_sync"); }

TEST(DdpParityTest, BuffersOfTheFirstRank) { ExpectParity("buffers"); }

TEST(DdpParityTest, SynchronisedNorms) { ExpectParity("sync_batch_norm"); }

TEST(DdpParityTest, FrozenLayer) { ExpectParity("frozen"); }

TEST(DdpParityTest, StaticGraph) { ExpectParity("static_graph"); }

// Where gradients differ in the last bit of f32, some are rounded to another
// bf16.
TEST(DdpParityTest, GradientsInBf16) { ExpectParity("bf16_hook", 1e-4); }

}  // namespace
}  // namespace troupe
