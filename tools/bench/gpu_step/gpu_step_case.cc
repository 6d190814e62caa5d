#include "tools/bench/gpu_step/gpu_step_case.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/file_system.h"
#include "data/registry.h"
#include "nn/tensor/device.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/spec_builder.h"

namespace troupe::bench {
namespace {

using tools::Setting;

constexpr char kAll[] =
    "data.kind=synthetic data.test_count=1 optimizer.lr=0.01 "
    "train.steps=1000000000000 train.eval_every=1000000000000 "
    "train.stop_on_nan=false";

struct Case {
  const char* name;
  const char* settings;  // beside kAll
};

constexpr Case kCases[] = {
    {"toy_mlp",
     "model.kind=mlp model.widths=10 data.input_shape=10 data.num_classes=0 "
     "data.target_dim=5 data.train_count=16384 train.global_batch_size=20"},
    {"toy_cnn",
     "model.kind=lenet data.input_shape=32,32,3 data.train_count=4096 "
     "train.global_batch_size=16"},
    {"mnist_mlp",
     "model.kind=mlp model.widths=512,512 data.input_shape=784 "
     "data.train_count=8192 train.global_batch_size=64"},
};

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

absl::StatusOr<actors::JobSpec> MakeJob(const Case& c,
                                        const StepOptions& options) {
  const std::string text = absl::StrCat(
      kAll, " ", c.settings, " train.cuda_graphs=", options.cuda_graphs);
  TROUPE_ASSIGN_OR_RETURN(tools::LoadedConfig loaded,
                          tools::ParseConfig("", "", SettingsOf(text)));
  TROUPE_ASSIGN_OR_RETURN(loaded.config.job.device,
                          nn::Device::Parse(options.device));
  if (options.bf16) {
    loaded.config.job.dtype = nn::DType::kBF16;
    loaded.config.model.options.dtype = nn::DType::kBF16;
  }
  TROUPE_ASSIGN_OR_RETURN(const data::DataSplits splits,
                          data::OpenDataset(loaded.config.data));
  base::PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
                          tools::BuildSpec(loaded, splits, files));
  spec.checkpoint.files = nullptr;
  spec.kernel_choices = options.choices;
  spec.test = nullptr;
  return spec;
}

}  // namespace

std::vector<std::string> StepCaseNames() {
  std::vector<std::string> names;
  for (const Case& c : kCases) names.push_back(c.name);
  return names;
}

absl::StatusOr<actors::JobSpec> MakeStepJob(const std::string& name,
                                            const StepOptions& options) {
  for (const Case& c : kCases) {
    if (c.name == name) return MakeJob(c, options);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no case ", name, "; there are ",
                   absl::StrJoin(StepCaseNames(), ", ")));
}

}  // namespace troupe::bench
