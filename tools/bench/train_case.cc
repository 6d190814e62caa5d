#include "tools/bench/train_case.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/files/file_system.h"
#include "data/in_memory_dataset.h"
#include "data/registry.h"
#include "nn/tensor/caching_allocator.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/run/spec_builder.h"

namespace troupe::bench {
namespace {

using tools::Setting;

constexpr char kAll[] =
    "train.steps=1000000000000 train.eval_every=1000000000000 ";
constexpr char kImages[] =
    "data.kind=synthetic data.input_shape=64,64,3 data.num_classes=1000 "
    "data.train_count=256 ";
constexpr char kVectors[] = "data.kind=synthetic model.kind=mlp ";
constexpr char kGpt[] =
    "data.kind=text data.tokenizer=bytes data.context=128 data.train_count=512 "
    "model.kind=gpt_micro model.width=256 optimizer.kind=adamw ";
constexpr char kWideGpt[] =
    "data.kind=text data.tokenizer=bytes data.context=256 data.train_count=256 "
    "model.kind=gpt_micro optimizer.kind=adamw ";

struct Case {
  const char* name;
  const char* base;      // settings that several cases share
  const char* settings;  // further settings, after those and kAll
  int batch;             // batch size of one rank
};

constexpr Case kCases[] = {
    {"toy_mlp", kVectors,
     "data.input_shape=10 model.widths=10 data.num_classes=0 data.target_dim=5 "
     "data.train_count=16384",
     20},
    {"toy_cnn", "data.kind=synthetic ",
     "data.input_shape=32,32,3 data.train_count=4096 model.kind=lenet", 16},
    {"mnist_mlp", kVectors,
     "data.input_shape=784 model.widths=512,512 data.train_count=8192", 64},
    {"mlp_25m", kVectors,
     "data.input_shape=2236 model.widths=2236,2236,2236,2236 model.bias=false "
     "data.num_classes=2236 data.train_count=256",
     64},
    {"resnet18", kImages, "model.kind=resnet18", 8},
    {"resnet50", kImages, "model.kind=resnet50", 8},
    {"vgg11", kImages, "model.kind=vgg11", 8},
    {"vit_tiny", kImages, "model.kind=vit_tiny model.patch_size=8", 8},
    {"gpt", kGpt, "model.depth=4", 8},
    {"gpt8", kGpt, "model.depth=8 model.tie_head=false", 8},
    {"mlp8", kVectors,
     "data.input_shape=1024 "
     "model.widths=1024,1024,1024,1024,1024,1024,1024 data.num_classes=1024 "
     "data.train_count=2048",
     128},
    {"gpt_w512", kWideGpt, "model.width=512 model.heads=8 model.depth=4", 4},
    {"gpt_w1024", kWideGpt, "model.width=1024 model.heads=16 model.depth=2", 4},
    {"gpt12", kGpt, "model.depth=12", 8},
    {"gpt12_recomputed", kGpt, "model.depth=12 model.recompute_every=1", 8},
    {"resnet50_224", "data.kind=synthetic model.kind=resnet50 ",
     "data.input_shape=224,224,3 data.num_classes=1000 data.train_count=512",
     256},
    {"gpt2", "data.kind=tokens data.path=none ",
     "data.context=1024 data.train_count=256 model.kind=gpt2 "
     "model.vocab_size=50304 optimizer.kind=adamw",
     32},
};

// A linear congruential generator: the numbers only have to differ.
class Numbers {
 public:
  std::uint32_t Next() {
    state_ = state_ * 1664525u + 1013904223u;
    return state_ >> 8;
  }
  float Uniform() {  // [-1, 1)
    return static_cast<float>(Next()) * 0x1p-23f - 1.0f;
  }

 private:
  std::uint32_t state_ = 1;
};

// Fills a tensor with f32 values, or with i64 numbers below `classes`.
void Fill(const nn::Tensor& tensor, std::int64_t classes, Numbers& numbers) {
  if (tensor.dtype() == nn::DType::kF32) {
    for (float& value : tensor.span<float>()) value = numbers.Uniform();
    return;
  }
  for (std::int64_t& value : tensor.span<std::int64_t>()) {
    value = numbers.Next() % classes;
  }
}

absl::StatusOr<data::DatasetPtr> RandomSamples(const data::SampleSpec& spec,
                                               std::int64_t count) {
  nn::CachingAllocator allocator;
  const nn::Tensor inputs =
      nn::Tensor::Empty(spec.InputShape(count), spec.input_dtype, allocator);
  const nn::Tensor targets =
      nn::Tensor::Empty(spec.TargetShape(count), spec.target_dtype, allocator);
  Numbers numbers;
  Fill(inputs, spec.num_classes, numbers);
  Fill(targets, spec.num_classes, numbers);
  return data::MakeInMemoryDataset(inputs, targets, spec.num_classes);
}

std::vector<Setting> SettingsOf(const std::string& text) {
  std::vector<Setting> settings;
  for (absl::string_view word :
       absl::StrSplit(text, ' ', absl::SkipWhitespace())) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    settings.push_back(
        {parts.first, parts.second, absl::StrCat("--set ", parts.first)});
  }
  return settings;
}

absl::StatusOr<actors::JobSpec> MakeJob(
    const Case& c, int ranks, const std::vector<std::string>& settings) {
  const std::string text =
      absl::StrCat(kAll, c.base, c.settings, " mesh.dp=", ranks,
                   " train.global_batch_size=", c.batch * ranks, " ",
                   absl::StrJoin(settings, " "));
  TROUPE_ASSIGN_OR_RETURN(const tools::LoadedConfig loaded,
                          tools::ParseConfig("", "", SettingsOf(text)));
  const data::DatasetOptions& options = loaded.config.data;
  const auto sample = data::KnownSampleSpec(options);
  TROUPE_CHECK(sample.has_value(), "no case needs files");
  data::DataSplits splits;
  TROUPE_ASSIGN_OR_RETURN(splits.train,
                          RandomSamples(*sample, options.train_count));
  base::PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
                          tools::BuildSpec(loaded, splits, files));
  spec.checkpoint.files = nullptr;
  return spec;
}

}  // namespace

std::vector<std::string> TrainCaseNames() {
  std::vector<std::string> names;
  for (const Case& c : kCases) names.push_back(c.name);
  return names;
}

absl::StatusOr<actors::JobSpec> MakeTrainJob(
    const std::string& name, int ranks,
    const std::vector<std::string>& settings) {
  for (const Case& c : kCases) {
    if (c.name == name) return MakeJob(c, ranks, settings);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no case ", name, "; choose one of ",
                   absl::StrJoin(TrainCaseNames(), ", ")));
}

}  // namespace troupe::bench
