#include "tools/trainer/commands/predict_command.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "actors/inference/predict.h"
#include "base/check.h"
#include "data/description/class_names.h"
#include "data/registry.h"
#include "nn/serialize/weight_file.h"
#include "nn/tensor/caching_allocator.h"
#include "tools/trainer/commands/train_options.h"
#include "tools/trainer/config/config_blame.h"

namespace troupe::tools {
namespace {

constexpr char kPredictHelp[] =
    R"(trainer predict --checkpoint=DIR [--config=FILE] [options] IMAGE...

Prints the likeliest classes of images (JPEG, PNG, WebP, GIF, TIFF, BMP or PNM), by
the model of a checkpoint, which has the names of the classes. The configuration is
that of the run that wrote it, with data.kind = "images": its sizes say how an image
is cut. Nothing is read of its data (data.path) unless the checkpoint is of an earlier
version, without names.

Options:
  --checkpoint=DIR         A checkpoint ("checkpoints/photos/best"), or a folder
                           of them, of which the newest is taken.
  --config=FILE            As of trainer train; so is the next.
  --set section.key=value
  --top=N                  So many classes of each image: 3.
  --threads=N              Of each rank's computation: 1. With mesh.pp there are
                           several, and none holds the whole model.
  --help                   This text.

For example:

  trainer predict --config=photos.toml --checkpoint=checkpoints/photos/best *.jpg
)";

constexpr char kPredictRun[] = "photos";

// Returns the names of the classes that the model tells apart: those in its
// checkpoint, or in one of an earlier version the folders of the data.
absl::StatusOr<std::vector<std::string>> ClassesOf(const OpenedRun& run,
                                                   base::FileSystem& files,
                                                   const NoteFn& note) {
  const auto& saved = run.checkpoint.state().sampler.data;
  const auto entry = saved.find(data::kClassesEntry);
  if (entry != saved.end()) {
    std::vector<std::string> names = data::NamesOfClasses(entry->second);
    if (!names.empty()) return names;
  }
  TROUPE_ASSIGN_OR_RETURN(data::DataSplits splits,
                          OpenData(run.loaded, files, note));
  return std::move(splits.classes);
}

// Returns the images of the request as samples to test with.
absl::StatusOr<data::DataSplits> OpenImages(const OpenedRun& run,
                                            const PredictRequest& request,
                                            base::FileSystem& files,
                                            const NoteFn& note) {
  const std::string& kind = run.loaded.config.data.kind;
  if (kind != "images") {
    return ErrorAt(run.loaded, {"data.kind"},
                   absl::StrCat("data.kind = \"", kind,
                                "\" has no classes of images; it must be "
                                "\"images\""));
  }
  data::DatasetOptions options = run.loaded.config.data;
  options.files = &files;
  data::DataSplits splits;
  TROUPE_ASSIGN_OR_RETURN(splits.classes, ClassesOf(run, files, note));
  TROUPE_ASSIGN_OR_RETURN(
      splits.test, data::OpenImagesAt(options, request.paths, splits.classes));
  return splits;
}

// Returns softmax(logits), in the order of the classes.
std::vector<double> Probabilities(absl::Span<const float> logits) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> shares;
  for (const float logit : logits) shares.push_back(std::exp(logit - highest));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

// Returns "cat 98.1 %, dog 1.9 %": the likeliest class first, and of equally
// likely ones the first in the order of the classes.
std::string TopClasses(absl::Span<const double> shares,
                       const std::vector<std::string>& classes, int top) {
  std::vector<std::size_t> order(std::min(shares.size(), classes.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return shares[a] > shares[b]; });
  order.resize(std::min(order.size(), static_cast<std::size_t>(top)));
  return absl::StrJoin(order, ", ", [&](std::string* out, std::size_t i) {
    absl::StrAppend(out, classes[i],
                    absl::StrFormat(" %.1f %%", 100 * shares[i]));
  });
}

// Computes the logits of image `index`. The result refers to `*logits`.
absl::StatusOr<absl::Span<const float>> LogitsOf(
    const data::Dataset& images, std::int64_t index,
    actors::InferenceSession& model, nn::Tensor* logits) {
  TROUPE_ASSIGN_OR_RETURN(const nn::Tensor output,
                          actors::Predict(model, images, {index}));
  nn::CachingAllocator memory;
  TROUPE_ASSIGN_OR_RETURN(*logits,
                          nn::ConvertFloats(output, nn::DType::kF32, memory));
  if (logits->shape().rank() == 2 && logits->dtype() == nn::DType::kF32) {
    return absl::MakeConstSpan(logits->data<float>(), logits->numel());
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the model gives ", nn::DTypeName(logits->dtype()),
      logits->shape().ToString(),
      ", not f32[1, classes]; give the checkpoint of a classifier"));
}

int RunPredict(const std::vector<std::string>& arguments,
               const CommandContext& context) {
  const absl::StatusOr<PredictRequest> request = ParsePredict(arguments);
  if (!request.ok()) return Fail(context, request.status(), kExitUsage);
  const absl::StatusOr<ConfigSource> source =
      ParseConfigSource(request->run.config, request->run.sets);
  if (!source.ok()) return Fail(context, source.status(), kExitUsage);
  if (request->help) return Print(context, PredictHelp());
  return RunOnConfig(context, *source, [&](const LoadedConfig& loaded) {
    return Predict(loaded, *request, *context.files, context.write,
                   NotesOf(context));
  });
}

}  // namespace

std::string PredictHelp() { return kPredictHelp; }

absl::StatusOr<PredictRequest> ParsePredict(
    const std::vector<std::string>& arguments) {
  PredictRequest request;
  OptionsReader reader("predict");
  DeclareSavedRun(reader, kPredictRun, request.run);
  reader.Number("--top=3", 1, 1 << 16, &request.top);
  reader.Number("--threads=2", 1, 1024, &request.threads);
  reader.Others(&request.paths);
  Arguments left(arguments);
  TROUPE_ASSIGN_OR_RETURN(request.help, reader.Read(left));
  if (request.help) return request;
  TROUPE_RETURN_IF_ERROR(CheckSavedRun(request.run, kPredictRun));
  if (!request.paths.empty()) return request;
  return absl::InvalidArgumentError(
      "no image is given; write its file last: trainer predict "
      "--checkpoint=DIR photo.jpg");
}

absl::Status Predict(const LoadedConfig& loaded, const PredictRequest& request,
                     base::FileSystem& files,
                     const std::function<bool(absl::string_view)>& write,
                     const NoteFn& note) {
  TROUPE_ASSIGN_OR_RETURN(OpenedRun run, OpenRun(loaded, request.run, files));
  TROUPE_ASSIGN_OR_RETURN(const data::DataSplits splits,
                          OpenImages(run, request, files, note));
  TROUPE_ASSIGN_OR_RETURN(
      const std::unique_ptr<actors::InferenceSession> model,
      OpenSavedModel(std::move(run), splits, files, request.threads));
  for (std::size_t i = 0; i < request.paths.size(); ++i) {
    nn::Tensor output;
    TROUPE_ASSIGN_OR_RETURN(
        const absl::Span<const float> logits,
        LogitsOf(*splits.test, static_cast<std::int64_t>(i), *model, &output));
    const std::string classes =
        TopClasses(Probabilities(logits), splits.classes, request.top);
    if (!write(absl::StrCat(request.paths[i], ": ", classes, "\n"))) break;
  }
  return absl::OkStatus();
}

Command PredictCommand() {
  return {"predict", "--checkpoint=DIR [--config=FILE] IMAGE...",
          "the classes of images", PredictHelp, RunPredict};
}

}  // namespace troupe::tools
