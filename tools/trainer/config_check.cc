#include <initializer_list>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "comm/local/local_group.h"
#include "nn/modules/sequential.h"
#include "nn/optim/sgd.h"
#include "tools/trainer/config.h"
#include "tools/trainer/model_builder.h"

namespace troupe::tools {
namespace {

// More is a slip of the pen, or would need the memory of many machines.
constexpr std::int64_t kLayerWeightsMax = 10'000'000'000;

absl::Status At(const std::string& place, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(place, ": ", what));
}

// Where to point when values of several keys do not go together: at what the
// command line set, which is the newest; else at the first one of the file.
std::string Blame(const LoadedConfig& loaded,
                  std::initializer_list<const char*> keys) {
  const char* blamed = nullptr;
  for (const char* key : keys) {
    if (absl::StartsWith(loaded.Where(key), "--")) return loaded.Where(key);
    if (blamed == nullptr && loaded.IsSet(key)) blamed = key;
  }
  return blamed == nullptr ? loaded.file : loaded.Where(blamed);
}

absl::Status CheckLength(const LoadedConfig& loaded) {
  const actors::JobSpec& job = loaded.config.job;
  if (job.steps > 0 && job.epochs > 0) {
    return At(Blame(loaded, {"train.epochs", "train.steps"}),
              "train.steps and train.epochs are both set; remove one");
  }
  if (job.steps == 0 && job.epochs == 0) {
    return At(loaded.file,
              "neither train.steps nor train.epochs is set; write one, such as "
              "train.epochs = 5");
  }
  return absl::OkStatus();
}

absl::Status CheckRanks(const LoadedConfig& loaded) {
  const pipeline::Mesh& mesh = loaded.config.job.plan.mesh;
  const std::int64_t ranks = mesh.size();
  if (ranks <= comm::kLocalGroupSizeMax) return absl::OkStatus();
  return At(Blame(loaded, {"mesh.dp", "mesh.pp"}),
            absl::StrCat("mesh.dp * mesh.pp = ", mesh.dp(), " * ", mesh.pp(),
                         " = ", ranks, " ranks; one process has at most ",
                         comm::kLocalGroupSizeMax));
}

absl::Status CheckBatches(const LoadedConfig& loaded) {
  const pipeline::PlanOptions& plan = loaded.config.job.plan;
  const std::int64_t dp = plan.mesh.dp();
  const std::int64_t global = plan.global_batch_size;
  if (global % dp != 0) {
    return At(Blame(loaded, {"train.global_batch_size", "mesh.dp"}),
              absl::StrCat("train.global_batch_size = ", global,
                           " is not a multiple of mesh.dp = ", dp, "; use ",
                           (global / dp + 1) * dp));
  }
  const std::int64_t micro = plan.micro_batch_size;
  if (micro > 0 && global % (micro * dp) != 0) {
    const std::int64_t unit = micro * dp;
    return At(
        loaded.Where("train.micro_batch_size"),
        absl::StrCat("train.global_batch_size = ", global,
                     " is not a multiple of train.micro_batch_size * "
                     "mesh.dp = ",
                     micro, " * ", dp, "; use ", (global / unit + 1) * unit,
                     ", or another train.micro_batch_size"));
  }
  const std::int64_t count = loaded.config.data.train_count;
  if (count > 0 && count < global) {
    return At(Blame(loaded, {"data.train_count", "train.global_batch_size"}),
              absl::StrCat("data.train_count = ", count,
                           " gives no whole step of train.global_batch_size = ",
                           global, "; use at least ", global));
  }
  return absl::OkStatus();
}

absl::Status CheckData(const LoadedConfig& loaded) {
  const data::DatasetOptions& data = loaded.config.data;
  if ((data.kind == "mnist" || data.kind == "cifar10") && data.path.empty()) {
    return At(Blame(loaded, {"data.kind", "data.path"}),
              absl::StrCat("data.kind = \"", data.kind,
                           "\" needs data.path, the folder of its files"));
  }
  const int axes = data.input_shape.rank();
  if (axes != 1 && axes != 3) {
    return At(loaded.Where("data.input_shape"),
              absl::StrCat("data.input_shape has ", axes,
                           " numbers; it takes one (length) or three (height, "
                           "width, channels)"));
  }
  return absl::OkStatus();
}

// The layers' weights, before any layer is made.
absl::Status CheckWidths(const LoadedConfig& loaded) {
  const TrainerConfig& config = loaded.config;
  if (config.model.kind == "lenet") return absl::OkStatus();
  // In double, which no product of two overflows.
  const data::SampleSpec sample = SampleSpecOf(config.data);
  std::vector<std::int64_t> widths = {sample.input_shape.numel()};
  if (config.model.kind == "mlp") {
    widths.insert(widths.end(), config.model.widths.begin(),
                  config.model.widths.end());
  }
  widths.push_back(sample.is_classification() ? sample.num_classes
                                              : sample.target_shape.numel());
  for (std::size_t i = 1; i < widths.size(); ++i) {
    if (double(widths[i - 1]) * double(widths[i]) <= kLayerWeightsMax) continue;
    return At(Blame(loaded, {"model.widths", "data.input_shape",
                             "data.num_classes", "data.target_dim"}),
              absl::StrCat("a layer from ", widths[i - 1], " to ", widths[i],
                           " has more weights than ", kLayerWeightsMax,
                           "; make model.widths or the samples smaller"));
  }
  return absl::OkStatus();
}

// The model fits the samples, and the cuts the model.
absl::Status CheckModel(const LoadedConfig& loaded) {
  const auto model = MakeModel(loaded.config);
  if (!model.ok()) {
    return At(Blame(loaded, {"model.kind", "data.kind", "data.input_shape"}),
              model.status().message());
  }
  const pipeline::PlanOptions& plan = loaded.config.job.plan;
  const int layers = (*model)->size();
  const int wanted = plan.mesh.pp() - 1;
  const int given = static_cast<int>(plan.cuts.size());
  if (given != wanted) {
    return At(Blame(loaded, {"mesh.cuts", "mesh.pp", "model.kind"}),
              absl::StrCat("mesh.pp = ", plan.mesh.pp(), " stages need ",
                           wanted, " cuts, mesh.cuts has ", given,
                           "; the model has layers 0 to ", layers - 1));
  }
  int before = 0;
  for (int cut : plan.cuts) {
    if (cut <= before || cut >= layers) {
      return At(Blame(loaded, {"mesh.cuts", "model.kind"}),
                absl::StrCat("mesh.cuts = [", absl::StrJoin(plan.cuts, ", "),
                             "] must ascend within 1 to ", layers - 1,
                             ", the layers of model.kind = \"",
                             loaded.config.model.kind, "\""));
    }
    before = cut;
  }
  return absl::OkStatus();
}

absl::Status CheckFolders(const LoadedConfig& loaded) {
  const actors::CheckpointOptions& checkpoint = loaded.config.job.checkpoint;
  const bool replace = loaded.config.replace_checkpoints;
  if (checkpoint.dir.empty()) {
    const char* needs = checkpoint.resume      ? "checkpoint.resume"
                        : checkpoint.every > 0 ? "checkpoint.every"
                        : replace              ? "checkpoint.replace"
                                               : nullptr;
    if (needs == nullptr) return absl::OkStatus();
    return At(loaded.Where(needs),
              absl::StrCat(needs,
                           " is set but checkpoint.dir is not; write "
                           "checkpoint.dir = \"checkpoints\", say"));
  }
  if (checkpoint.resume && replace) {
    // A file that starts anew may still be resumed from the command line.
    if (loaded.Where("checkpoint.resume") == "--resume") {
      return absl::OkStatus();
    }
    return At(Blame(loaded, {"checkpoint.replace", "checkpoint.resume"}),
              "checkpoint.replace and checkpoint.resume are both true; set one "
              "to false");
  }
  return absl::OkStatus();
}

absl::Status CheckOptimizer(const LoadedConfig& loaded) {
  const absl::Status status = loaded.config.optimizer.sgd.Validate();
  if (status.ok()) return status;
  // Single values are in range by the key table: what is left is nesterov.
  return At(Blame(loaded, {"optimizer.nesterov", "optimizer.momentum",
                           "optimizer.dampening"}),
            "optimizer.nesterov = true needs optimizer.momentum above 0 and "
            "optimizer.dampening = 0");
}

}  // namespace

absl::Status CheckConfig(const LoadedConfig& loaded) {
  TROUPE_RETURN_IF_ERROR(CheckLength(loaded));
  TROUPE_RETURN_IF_ERROR(CheckData(loaded));
  TROUPE_RETURN_IF_ERROR(CheckRanks(loaded));
  TROUPE_RETURN_IF_ERROR(CheckBatches(loaded));
  TROUPE_RETURN_IF_ERROR(CheckWidths(loaded));
  TROUPE_RETURN_IF_ERROR(CheckModel(loaded));
  TROUPE_RETURN_IF_ERROR(CheckOptimizer(loaded));
  return CheckFolders(loaded);
}

}  // namespace troupe::tools
