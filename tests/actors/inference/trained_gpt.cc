#include "tests/actors/inference/trained_gpt.h"

#include "base/files/file_system.h"
#include "data/in_memory_dataset.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/ops/loss.h"
#include "nn/optim/adam.h"

namespace troupe::actors {

std::unique_ptr<nn::Kernels> PlainKernels() {
  nn::CpuKernelOptions options;
  options.onednn = false;
  return nn::CreateCpuKernels(options);
}

std::unique_ptr<nn::Sequential> Gpt(std::int64_t width) {
  nn::Gpt2Options gpt;
  gpt.layers = 4;
  gpt.heads = 2;
  gpt.width = width;
  gpt.context = kContext;
  gpt.vocab_size = kVocabulary;
  gpt.dropout = 0.5;  // would change the outputs if it were on
  gpt.tie_head = false;
  return *nn::MakeGpt2(gpt);
}

data::DatasetPtr Sequences() {
  nn::CachingAllocator memory;
  const nn::Shape shape = {kSamples, kContext};
  nn::Tensor tokens = nn::Tensor::Empty(shape, nn::DType::kI64, memory);
  nn::Tensor next = nn::Tensor::Empty(shape, nn::DType::kI64, memory);
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    tokens.data<std::int64_t>()[i] = i * i % kVocabulary;
    next.data<std::int64_t>()[i] = (i * i + 1) % kVocabulary;
  }
  return *data::MakeInMemoryDataset(tokens, next, kVocabulary);
}

JobSpec GptJob(const Cuts& cuts) {
  JobSpec spec;
  spec.model = [] { return Gpt(); };
  spec.loss = nn::ops::CrossEntropyLoss();
  spec.optimizer = [] {
    nn::AdamOptions adam;
    adam.lr = 0.01;
    return std::make_unique<nn::Adam>(adam);
  };
  spec.kernels = PlainKernels;
  spec.train = Sequences();
  spec.steps = 2;
  spec.timeout = absl::Seconds(60);
  spec.plan.mesh = pipeline::Mesh(1, static_cast<int>(cuts.size()) + 1);
  spec.plan.cuts = cuts;
  spec.plan.global_batch_size = 8;
  spec.plan.micro_batch_size = 3;
  return spec;
}

std::string* InferenceSessionTest::folder_ = nullptr;

void InferenceSessionTest::SetUpTestSuite() {
  folder_ = new std::string(testing::TempDir() + "/inference_session");
  base::PosixFileSystem files;
  files.RemoveAll(*folder_).IgnoreError();  // an earlier run's folder
  JobSpec spec = GptJob({"h.2"});
  spec.checkpoint.dir = *folder_;
  ASSERT_TRUE(RunJob(spec).ok());
}

nn::GenerateOptions InferenceSessionTest::Sampled() {
  nn::GenerateOptions options;
  options.tokens = 24;  // beyond the context
  options.context = kContext;
  options.sampling.temperature = 1.5;
  options.sampling.top_k = 9;
  options.sampling.top_p = 0.95;
  options.sampling.seed = 5;
  return options;
}

Tokens InferenceSessionTest::Text() {
  Tokens text;
  EXPECT_TRUE(nn::Generate(Whole(), *kernels_, {1, 2}, Sampled(),
                           [&](std::int32_t token) {
                             text.push_back(token);
                             return true;
                           })
                  .ok());
  return text;
}

Tokens InferenceSessionTest::Text(InferenceSession& session) {
  Tokens text;
  const absl::Status status = nn::Generate(
      [&](const nn::Tensor& tokens, const nn::TextPlaces& texts) {
        return session.Run(tokens, texts);
      },
      memory_, {1, 2}, Sampled(),
      [&](std::int32_t token) {
        text.push_back(token);
        return true;
      });
  EXPECT_TRUE(status.ok()) << status;
  return text;
}

}  // namespace troupe::actors
