#include "tools/trainer/commands/generate_command.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "data/registry.h"
#include "nn/generate/generate.h"
#include "nn/serialize/weight_file.h"
#include "nn/tensor/caching_allocator.h"
#include "tools/trainer/commands/train_options.h"
#include "tools/trainer/config/config_blame.h"
#include "tools/trainer/terminal/arguments.h"
#include "tools/trainer/terminal/options_reader.h"

namespace troupe::tools {
namespace {

constexpr char kGenerateHelp[] =
    R"(trainer generate --checkpoint=DIR [--config=FILE] [options]

Prints a prompt and what the language model of a checkpoint says next, token by
token. The configuration is that of the run that wrote it: model and data must
be the same, since the data know the tokenizer. The text is the same under any
mesh; with mesh.pp, each rank holds its stages of the model alone.

Options:
  --checkpoint=DIR         A checkpoint ("checkpoints/char_gpt/best"), or a
                           folder of them, of which the newest is taken.
  --config=FILE            As of trainer train; so is the next.
  --set section.key=value
  --prompt=TEXT            What the text begins with; an empty line, by default.
  --tokens=N               How many follow: 200.
  --temperature=T          Divides the logits: below 1 the text is more likely,
                           above 1 more varied; 0 always takes the likeliest
                           token. 1, by default.
  --top-k=K                Chooses among the K likeliest tokens; 0, which is the
                           default, among all.
  --top-p=P                Chooses among the fewest tokens that together have
                           probability P: 1.
  --seed=N                 Another number, another text; the same, the same: 0.
  --threads=N              Of each rank's computation: 1.
  --help                   This text.

For example, of a model that was trained on the text input.txt:

  trainer generate --config=examples/char_gpt/char_gpt.toml \
      --set data.path=input.txt --checkpoint=checkpoints/char_gpt \
      --prompt=ROMEO: --temperature=0.8

The same by two ranks, of a model that was cut as it is here or in another way:

  trainer generate --config=long.toml --checkpoint=checkpoints/long \
      --set mesh.pp=2
)";

constexpr char kGenerateRun[] = "char_gpt";
constexpr int kTokensMax = 1'000'000;
constexpr int kSeedMax = 2'147'483'647;
constexpr int kTopKMax = 1'000'000'000;
constexpr double kTemperatureMax = 100;

// Opens the dataset, which must have a tokenizer.
absl::StatusOr<data::DataSplits> OpenText(const LoadedConfig& loaded,
                                          base::FileSystem& files,
                                          const NoteFn& note) {
  const std::string& kind = loaded.config.data.kind;
  if (kind != "text" && kind != "tokens") {
    return ErrorAt(loaded, {"data.kind"},
                   absl::StrCat("data.kind = \"", kind,
                                "\" has no text to generate more of; it must "
                                "be \"text\" or \"tokens\""));
  }
  TROUPE_ASSIGN_OR_RETURN(data::DataSplits splits,
                          OpenData(loaded, files, note));
  if (splits.tokenizer == nullptr) {
    return ErrorAt(loaded, {"data.tokenizer_path"},
                   "the tokens of data.path are numbers without a text; set "
                   "data.tokenizer and data.tokenizer_path");
  }
  return splits;
}

int RunGenerate(const std::vector<std::string>& arguments,
                const CommandContext& context) {
  const absl::StatusOr<GenerateRequest> request = ParseGenerate(arguments);
  if (!request.ok()) return Fail(context, request.status(), kExitUsage);
  const absl::StatusOr<ConfigSource> source =
      ParseConfigSource(request->run.config, request->run.sets);
  if (!source.ok()) return Fail(context, source.status(), kExitUsage);
  if (request->help) return Print(context, GenerateHelp());
  return RunOnConfig(context, *source, [&](const LoadedConfig& loaded) {
    return GenerateText(loaded, *request, *context.files, context.write,
                        NotesOf(context));
  });
}

}  // namespace

std::string GenerateHelp() { return kGenerateHelp; }

absl::StatusOr<GenerateRequest> ParseGenerate(
    const std::vector<std::string>& arguments) {
  GenerateRequest request;
  int top_k = 0;
  int seed = 0;
  OptionsReader reader("generate");
  DeclareSavedRun(reader, kGenerateRun, request.run);
  reader.Text("--prompt=ROMEO:", &request.prompt);
  reader.Number("--tokens=200", 1, kTokensMax, &request.tokens);
  reader.Real("--temperature=0.8", 0, kTemperatureMax,
              &request.sampling.temperature);
  reader.Number("--top-k=40", 0, kTopKMax, &top_k);
  reader.Real("--top-p=0.9", 0, 1, &request.sampling.top_p);
  reader.Number("--seed=1", 0, kSeedMax, &seed);
  reader.Number("--threads=2", 1, 1024, &request.threads);
  Arguments left(arguments);
  TROUPE_ASSIGN_OR_RETURN(request.help, reader.Read(left));
  if (request.help) return request;
  request.sampling.top_k = top_k;
  request.sampling.seed = static_cast<std::uint64_t>(seed);
  TROUPE_RETURN_IF_ERROR(CheckSavedRun(request.run, kGenerateRun));
  if (request.prompt.empty()) {
    return absl::InvalidArgumentError(
        "--prompt=: must have at least one character");
  }
  if (request.sampling.top_p == 0) {
    return absl::InvalidArgumentError(
        "--top-p=0: no token is left; must be above 0");
  }
  return request;
}

absl::Status GenerateText(const LoadedConfig& loaded,
                          const GenerateRequest& request,
                          base::FileSystem& files,
                          const std::function<bool(absl::string_view)>& write,
                          const NoteFn& note) {
  TROUPE_ASSIGN_OR_RETURN(OpenedRun run, OpenRun(loaded, request.run, files));
  TROUPE_ASSIGN_OR_RETURN(const data::DataSplits splits,
                          OpenText(run.loaded, files, note));
  const data::Tokenizer& tokenizer = *splits.tokenizer;
  TROUPE_RETURN_IF_ERROR(CheckVocabulary(run, tokenizer));
  absl::StatusOr<std::vector<data::Token>> prompt =
      tokenizer.Encode(request.prompt);
  if (!prompt.ok()) {
    return base::WithMessage(
        prompt.status(), absl::StrCat("--prompt: ", prompt.status().message()));
  }

  TROUPE_ASSIGN_OR_RETURN(
      const std::unique_ptr<actors::InferenceSession> model,
      OpenSavedModel(std::move(run), splits, files, request.threads));
  nn::CachingAllocator memory;
  const nn::LogitsFn logits =
      [&](const nn::Tensor& tokens) -> absl::StatusOr<nn::Tensor> {
    TROUPE_ASSIGN_OR_RETURN(const nn::Tensor output, model->Run(tokens));
    return nn::ConvertFloats(output, nn::DType::kF32, memory);
  };

  if (!write(request.prompt)) return absl::OkStatus();
  nn::GenerateOptions options;
  options.tokens = request.tokens;
  options.context = loaded.config.data.text.context;
  options.sampling = request.sampling;
  absl::Status decoded = absl::OkStatus();
  TROUPE_RETURN_IF_ERROR(nn::Generate(
      logits, memory, *std::move(prompt), options, [&](std::int32_t token) {
        const absl::StatusOr<std::string> text = tokenizer.Decode({token});
        if (!text.ok()) decoded = text.status();
        return text.ok() && write(*text);
      }));
  TROUPE_RETURN_IF_ERROR(decoded);
  write("\n");
  return absl::OkStatus();
}

Command GenerateCommand() {
  return {"generate", "--checkpoint=DIR [--config=FILE] [--prompt=TEXT]",
          "text of a language model", GenerateHelp, RunGenerate};
}

}  // namespace troupe::tools
