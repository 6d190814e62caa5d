#include "tools/trainer/commands/export_command.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/load_model.h"
#include "base/check.h"
#include "base/field_error.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/weight_file.h"
#include "nn/tensor/caching_allocator.h"
#include "nn/tensor/dtype.h"
#include "tools/trainer/terminal/arguments.h"
#include "tools/trainer/terminal/options_reader.h"

namespace troupe::tools {
namespace {

constexpr char kExportHelp[] =
    R"(trainer export --checkpoint=DIR --out=FILE [--format=F] [--dtype=T]

Writes the weights of a checkpoint, parameters and buffers, into one safetensors
file that PyTorch loads: names and layouts are those of its modules.

Options:
  --checkpoint=DIR  The folder of a run's checkpoints, of which the newest is
                    taken, or of one of them.
  --out=FILE        The file. One that is there is replaced.
  --format=F        "pytorch", which is the default, or "transformers": a GPT-2
                    as Hugging Face's GPT2LMHeadModel has it, with
                    "transformer." before its names and weights of Conv1D
                    layers as (in, out).
  --dtype=T         Converts floats to "f32", "f64", "bf16" or "f16"; those of
                    a 16-bit run from the f32 values that its optimizer keeps.

For example, and then in Python:

  trainer export --checkpoint=checkpoints/glyphs --out=glyphs.safetensors

  model.load_state_dict(safetensors.torch.load_file("glyphs.safetensors"))
)";

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(what);
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
  if (options.format != kPyTorchFormat &&
      options.format != kTransformersFormat) {
    return Wrong(absl::StrCat("--format=", options.format, ": must be \"",
                              kPyTorchFormat, "\" or \"", kTransformersFormat,
                              "\""));
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
  if (options.format == kTransformersFormat) {
    absl::StatusOr<std::vector<nn::NamedTensor>> renamed =
        nn::AsTransformersGpt2(tensors, memory);
    if (!renamed.ok()) {
      return base::WithMessage(
          renamed.status(),
          absl::StrCat(checkpoint.path(), ": ", renamed.status().message()));
    }
    tensors = *std::move(renamed);
  }
  if (!options.dtype.empty()) {
    TROUPE_ASSIGN_OR_RETURN(const nn::DType dtype,
                            nn::ParseDType(options.dtype));
    for (nn::NamedTensor& t : tensors) {
      TROUPE_ASSIGN_OR_RETURN(t.tensor,
                              nn::ConvertFloats(t.tensor, dtype, memory));
    }
  }
  TROUPE_RETURN_IF_ERROR(
      nn::WriteSafetensors(files, options.out, tensors, {{"format", "pt"}}));
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
