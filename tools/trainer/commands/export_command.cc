#include "tools/trainer/commands/export_command.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/load_model.h"
#include "base/check.h"
#include "base/field_error.h"
#include "nn/models/gpt2.h"
#include "nn/models/vit.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/torch/torch_writer.h"
#include "nn/serialize/transformers_model.h"
#include "nn/serialize/weight_file.h"
#include "nn/tensor/caching_allocator.h"
#include "nn/tensor/dtype.h"
#include "tools/trainer/terminal/arguments.h"
#include "tools/trainer/terminal/options_reader.h"

namespace troupe::tools {
namespace {

constexpr char kExportHelp[] =
    R"(trainer export --checkpoint=DIR --out=FILE [--format=F] [--dtype=T]

Writes the weights of a checkpoint, parameters and buffers, for other programs:
names and layouts are those of PyTorch's modules.

Options:
  --checkpoint=DIR  The folder of a run's checkpoints, of which the newest is
                    taken, or of one of them.
  --out=FILE        The file, or folder of "hf". A file that is there is
                    replaced.
  --format=F        "safetensors", which is the default (and its older name,
                    "pytorch"); "pt": a state dict as torch.save writes it;
                    "hf": a folder with config.json and model.safetensors, which
                    from_pretrained() of Hugging Face's GPT2LMHeadModel,
                    ResNetForImageClassification or ViTForImageClassification
                    loads; "transformers": a GPT-2 as GPT2LMHeadModel has it,
                    with "transformer." before its names and weights of Conv1D
                    layers as (in, out), in one safetensors file.
  --dtype=T         Converts floats to "f32", "f64", "bf16" or "f16"; those of
                    a 16-bit run from the f32 values that its optimizer keeps.

For example, and then in Python:

  trainer export --checkpoint=checkpoints/glyphs --out=glyphs.pt --format=pt

  model.load_state_dict(torch.load("glyphs.pt"))
)";

// Values of ExportOptions::format in the order of the help.
constexpr absl::string_view kFormats[] = {kSafetensorsFormat, kPyTorchFormat,
                                          kPtFormat, kHfFormat,
                                          kTransformersFormat};

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

// Returns the number of heads of the checkpoint's model; 0: it has none, or the
// checkpoint is of a version that did not save settings.
std::int64_t HeadsOf(const actors::Checkpoint& checkpoint) {
  const auto& settings = checkpoint.state().settings;
  const auto value = [&](absl::string_view key) -> absl::string_view {
    const auto found = settings.find(std::string(key));
    if (found == settings.end()) return "";
    return absl::StripPrefix(absl::StripSuffix(found->second, "\""), "\"");
  };
  std::int64_t heads = 0;
  if (absl::SimpleAtoi(value("model.heads"), &heads) && heads > 0) return heads;
  const auto gpt2 = nn::Gpt2Preset(value("model.kind"));
  if (gpt2.ok()) return gpt2->heads;
  const auto vit = nn::VitPreset(value("model.kind"));
  return vit.ok() ? vit->heads : 0;
}

// Writes the tensors, named as in our model, in the form that was asked for.
absl::Status WriteTensors(const ExportOptions& options,
                          const actors::Checkpoint& checkpoint,
                          const std::vector<nn::NamedTensor>& tensors,
                          base::FileSystem& files, nn::Allocator& memory) {
  const nn::SafetensorsMetadata metadata = {{"format", "pt"}};
  const auto of_checkpoint = [&](const absl::Status& status) {
    return base::WithMessage(
        status, absl::StrCat(checkpoint.path(), ": ", status.message()));
  };
  if (options.format == kPtFormat) {
    return nn::WriteTorchFile(files, options.out, tensors);
  }
  if (options.format == kTransformersFormat) {
    const auto renamed = nn::AsTransformersGpt2(tensors, memory);
    if (!renamed.ok()) return of_checkpoint(renamed.status());
    return nn::WriteSafetensors(files, options.out, *renamed, metadata);
  }
  if (options.format == kHfFormat) {
    const auto model = nn::AsTransformers(tensors, HeadsOf(checkpoint), memory);
    if (!model.ok()) return of_checkpoint(model.status());
    TROUPE_RETURN_IF_ERROR(base::CreateFolderOnDisk(files, options.out));
    TROUPE_RETURN_IF_ERROR(base::WriteWholeFile(
        files, base::JoinPath(options.out, "config.json"), model->config));
    return nn::WriteSafetensors(
        files, base::JoinPath(options.out, "model.safetensors"), model->tensors,
        metadata);
  }
  return nn::WriteSafetensors(files, options.out, tensors, metadata);
}

int RunExport(const std::vector<std::string>& arguments,
              const CommandContext& context) {
  const absl::StatusOr<ExportOptions> options = ParseExport(arguments);
  if (!options.ok()) return Fail(context, options.status(), kExitUsage);
  if (options->help) return Print(context, ExportHelp());
  const absl::StatusOr<std::string> text =
      ExportWeights(*options, *context.files);
  return text.ok() ? Print(context, *text) : Fail(context, text.status());
}

}  // namespace

std::string ExportHelp() { return kExportHelp; }

absl::StatusOr<ExportOptions> ParseExport(
    const std::vector<std::string>& arguments) {
  ExportOptions options;
  OptionsReader reader("export");
  reader.Path("--checkpoint=checkpoints/glyphs", &options.checkpoint);
  reader.Path("--out=glyphs.safetensors", &options.out);
  reader.Text("--format=transformers", &options.format);
  reader.Text("--dtype=bf16", &options.dtype);
  Arguments left(arguments);
  TROUPE_ASSIGN_OR_RETURN(options.help, reader.Read(left));
  if (options.help) return options;
  if (options.checkpoint.empty()) {
    return Wrong(
        "no checkpoint is given; write --checkpoint=checkpoints/glyphs");
  }
  if (options.out.empty()) {
    return Wrong("no file is given; write --out=glyphs.safetensors");
  }
  if (std::find(std::begin(kFormats), std::end(kFormats), options.format) ==
      std::end(kFormats)) {
    return Wrong(absl::StrCat("--format=", options.format, ": must be one of ",
                              absl::StrJoin(kFormats, ", ")));
  }
  if (options.dtype.empty()) return options;
  const absl::StatusOr<nn::DType> dtype = nn::ParseDType(options.dtype);
  if (dtype.ok() && nn::IsFloating(*dtype)) return options;
  return Wrong(absl::StrCat("--dtype=", options.dtype,
                            ": must be \"f32\", \"f64\", \"bf16\" or "
                            "\"f16\""));
}

absl::StatusOr<std::string> ExportWeights(const ExportOptions& options,
                                          base::FileSystem& files) {
  TROUPE_ASSIGN_OR_RETURN(const actors::Checkpoint checkpoint,
                          actors::OpenCheckpoint(files, options.checkpoint));
  nn::CachingAllocator memory;
  // Parameters in the run's own dtype are the rounded master values.
  TROUPE_ASSIGN_OR_RETURN(
      std::vector<nn::NamedTensor> tensors,
      actors::ReadModel(checkpoint, memory,
                        options.dtype.empty() ? actors::ReadValues::kRounded
                                              : actors::ReadValues::kMaster));
  if (!options.dtype.empty()) {
    TROUPE_ASSIGN_OR_RETURN(const nn::DType dtype,
                            nn::ParseDType(options.dtype));
    for (nn::NamedTensor& t : tensors) {
      TROUPE_ASSIGN_OR_RETURN(t.tensor,
                              nn::ConvertFloats(t.tensor, dtype, memory));
    }
  }
  TROUPE_RETURN_IF_ERROR(
      WriteTensors(options, checkpoint, tensors, files, memory));
  std::int64_t elems = 0;
  for (const nn::NamedTensor& t : tensors) elems += t.tensor.numel();
  return absl::StrCat("wrote ", options.out, ": ", tensors.size(), " tensors, ",
                      elems, " numbers, of step ", checkpoint.state().step,
                      "\n");
}

Command ExportCommand() {
  return {"export", "--checkpoint=DIR --out=FILE", "weights for other programs",
          ExportHelp, RunExport};
}

}  // namespace troupe::tools
