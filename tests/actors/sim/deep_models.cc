#include "tests/actors/sim/deep_models.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "data/in_memory_dataset.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/models/resnet.h"
#include "nn/modules/attention.h"
#include "nn/modules/embedding.h"
#include "nn/modules/linear.h"
#include "nn/modules/norm.h"
#include "nn/modules/position_embedding.h"
#include "nn/modules/sequential.h"
#include "nn/ops/activation.h"
#include "nn/ops/add.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "nn/random/philox.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kMicroBatch = 2, kSamples = 512;
constexpr std::int64_t kTokens = 4, kVocabulary = 7, kWidth = 8, kHeads = 2;
constexpr std::int64_t kSide = 8, kClasses = 5, kChannels = 4;
constexpr int kLayers = 8;

// x + attention(norm(x)).
class AttentionHalf : public nn::Module {
 public:
  AttentionHalf()
      : norm_(Add<nn::LayerNorm>("ln_1", kWidth)),
        attention_(Add<nn::CausalSelfAttention>("attn", kWidth, kHeads)) {}
  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    return nn::ops::Add(ctx, x, attention_(ctx, norm_(ctx, x)));
  }

 private:
  nn::LayerNorm& norm_;
  nn::CausalSelfAttention& attention_;
};

// x + two linear layers of norm(x).
class MlpHalf : public nn::Module {
 public:
  MlpHalf()
      : norm_(Add<nn::LayerNorm>("ln_2", kWidth)),
        up_(Add<nn::Linear>("c_fc", kWidth, 4 * kWidth)),
        down_(Add<nn::Linear>("c_proj", 4 * kWidth, kWidth)) {}
  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    const nn::Tensor inner =
        nn::ops::Gelu(ctx, up_(ctx, norm_(ctx, x)), nn::ops::GeluForm::kTanh);
    return nn::ops::Add(ctx, x, down_(ctx, inner));
  }

 private:
  nn::LayerNorm& norm_;
  nn::Linear& up_;
  nn::Linear& down_;
};

std::unique_ptr<nn::Module> MakeGpt(bool tie_head) {
  auto model = std::make_unique<nn::Sequential>();
  auto& tokens = model->Append<nn::Embedding>(kVocabulary, kWidth);
  model->Append<nn::PositionEmbedding>(kTokens, kWidth);
  for (int layer = 0; layer < kLayers; ++layer) {
    model->Append<AttentionHalf>();
    model->Append<MlpHalf>();
  }
  model->Append<nn::LayerNorm>(kWidth);
  nn::Linear::Options without_bias;
  without_bias.bias = false;
  auto& head = model->Append<nn::Linear>(kWidth, kVocabulary, without_bias);
  if (tie_head) head.TieParameter("weight", tokens, "weight");
  return model;
}

nn::RandomStream Draws() {
  return nn::RandomStream(nn::RandomKey(11, nn::Purpose::kTest), {});
}

void FillBelow(std::int64_t limit, nn::RandomStream& draws,
               const nn::Tensor& tensor) {
  for (std::int64_t& value : tensor.span<std::int64_t>()) {
    value = static_cast<std::int64_t>(draws.Below(limit));
  }
}

data::DatasetPtr Sequences() {
  nn::CachingAllocator memory;
  const nn::Shape shape = {kSamples, kTokens};
  const nn::Tensor inputs = nn::Tensor::Empty(shape, nn::DType::kI64, memory);
  const nn::Tensor targets = nn::Tensor::Empty(shape, nn::DType::kI64, memory);
  nn::RandomStream draws = Draws();
  FillBelow(kVocabulary, draws, inputs);
  FillBelow(kVocabulary, draws, targets);
  return *data::MakeInMemoryDataset(inputs, targets, kVocabulary);
}

data::DatasetPtr Images() {
  nn::CachingAllocator memory;
  const nn::Tensor inputs =
      nn::Tensor::Empty({kSamples, kSide, kSide, 3}, nn::DType::kF32, memory);
  const nn::Tensor targets =
      nn::Tensor::Empty({kSamples}, nn::DType::kI64, memory);
  nn::RandomStream draws = Draws();
  for (float& value : inputs.span<float>()) {
    value = static_cast<float>(draws.Below(256)) / 128 - 1;
  }
  FillBelow(kClasses, draws, targets);
  return *data::MakeInMemoryDataset(inputs, targets, kClasses);
}

JobSpec TwoSteps(nn::ModelFactory model, data::DatasetPtr train) {
  JobSpec spec;
  spec.model = std::move(model);
  spec.loss = nn::ops::CrossEntropyLoss();
  spec.optimizer = [] {
    nn::SgdOptions sgd;
    sgd.lr = 0.1;
    sgd.momentum = 0.9;
    return std::make_unique<nn::Sgd>(sgd);
  };
  spec.kernels = [] {
    nn::CpuKernelOptions cpu;
    cpu.onednn = false;  // quick to create
    return nn::CreateCpuKernels(cpu);
  };
  spec.train = std::move(train);
  spec.seed = 5;
  spec.steps = 2;
  spec.timeout = absl::Seconds(60);
  return spec;
}

}  // namespace

JobSpec DeepModel::Job(const pipeline::Mesh& mesh, int micro_batches) const {
  JobSpec spec = job;
  spec.plan.mesh = mesh;
  spec.plan.micro_batch_size = kMicroBatch;
  spec.plan.global_batch_size = kMicroBatch * micro_batches * mesh.dp();
  return spec;
}

std::optional<std::vector<pipeline::Cut>> DeepModel::Cuts(int stages) const {
  const int parts = static_cast<int>(ways.size()) + 1;
  if (stages > parts) return std::nullopt;
  std::vector<pipeline::Cut> cuts;
  for (int stage = 1; stage < stages; ++stage) {
    cuts.push_back(ways[stage * parts / stages - 1]);
  }
  return cuts;
}

DeepModel SmallGpt(bool tie_head) {
  DeepModel gpt;
  gpt.name = "gpt";
  gpt.job = TwoSteps([tie_head] { return MakeGpt(tie_head); }, Sequences());
  for (int child = 1; child < 2 * kLayers + 4; ++child) {
    gpt.ways.emplace_back(child);
  }
  return gpt;
}

DeepModel SmallResNet18() {
  DeepModel resnet;
  resnet.name = "resnet18";
  resnet.job = TwoSteps(
      [] {
        nn::ResNetOptions options;
        options.num_classes = kClasses;
        options.stem = nn::ResNetStem::kCifar;
        options.width = kChannels;
        return *nn::MakeResNet(18, options);
      },
      Images());
  resnet.ways.emplace_back("bn1");
  for (int layer = 1; layer <= 4; ++layer) {
    for (int block = 0; block < 2; ++block) {
      resnet.ways.emplace_back(absl::StrCat("layer", layer, ".", block));
    }
  }
  for (const char* last : {"avgpool", "flatten", "fc"}) {
    resnet.ways.emplace_back(last);
  }
  return resnet;
}

}  // namespace troupe::actors
