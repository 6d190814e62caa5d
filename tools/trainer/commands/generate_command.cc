#include "tools/trainer/commands/generate_command.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/field_error.h"
#include "data/registry.h"
#include "nn/generate/generate.h"
#include "nn/serialize/weight_file.h"
#include "nn/tensor/caching_allocator.h"
#include "tools/trainer/commands/generated_texts.h"
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
  --prompts=FILE           A prompt in each line, instead; /dev/stdin reads them
                           from a pipe. Texts have an empty line between them.
  --batch=N                How many prompts at a time: 1. Each has the text that
                           it has alone; the texts come in the prompts' order.
                           An error of one of several prompts is noted, with
                           its line, and the others go on.
  --tokens=N               How many follow: 200.
  --stop=TEXT              Ends the text before the first TEXT in what follows
                           the prompt; may be repeated.
  --ignore-end             Goes on after the tokenizer's <|endoftext|>, which
                           ends a text otherwise and is not printed.
  --no-cache               Computes the whole text for each token, in place of
                           keeping keys and values of past tokens
                           (docs/using.md): less memory, more time.
  --temperature=T          Divides the logits: below 1 the text is more likely,
                           above 1 more varied; 0 always takes the likeliest
                           token. 1, by default.
  --top-k=K                Chooses among the K likeliest tokens; 0, which is the
                           default, among all.
  --top-p=P                Chooses among the fewest tokens that together have
                           probability P: 1.
  --min-p=P                Leaves out tokens less than P times as likely as the
                           likeliest; 0, which is the default, leaves out none.
  --repetition-penalty=R   Makes tokens that the text has already less likely:
                           divides their logits by R, or multiplies those below
                           0. 1, the default, changes nothing.
  --seed=N                 Another number, another text; the same, the same: 0.
                           The second of several prompts has N + 1, and so on.
  --json                   Prints an object in a line for each prompt, at the
                           text's end: prompt, text (what follows it), tokens
                           (their number), finish_reason ("stop", "length",
                           or "error", with the message as error).
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
constexpr int kBatchMax = 4096;
constexpr char kEndOfText[] = "<|endoftext|>";
constexpr int kTopKMax = 1'000'000'000;
constexpr double kTemperatureMax = 100;
constexpr double kPenaltyMax = 1000;
constexpr std::int64_t kPromptsBytesMax = 1 << 26;

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

struct Prompts {
  std::vector<std::string> names;  // for messages
  std::vector<std::string> texts;
  std::vector<std::vector<data::Token>> tokens;
};

// Returns the prompts of `request`, of which there is one at least.
absl::StatusOr<Prompts> ReadPrompts(const GenerateRequest& request,
                                    base::FileSystem& files,
                                    const data::Tokenizer& tokenizer) {
  std::vector<std::string> texts = {request.prompt};
  if (!request.prompts.empty()) {
    TROUPE_ASSIGN_OR_RETURN(const std::string text,
                            files.ReadToEnd(request.prompts, kPromptsBytesMax));
    texts = absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  }
  Prompts prompts;
  for (std::string& text : texts) {
    const std::string where =
        request.prompts.empty()
            ? "--prompt"
            : absl::StrCat(request.prompts, ":", prompts.texts.size() + 1);
    if (text.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": the line is empty; write a prompt, or delete the line"));
    }
    absl::StatusOr<std::vector<data::Token>> tokens = tokenizer.Encode(text);
    if (!tokens.ok()) {
      return base::WithMessage(
          tokens.status(),
          absl::StrCat(where, ": ", tokens.status().message()));
    }
    prompts.names.push_back(where);
    prompts.texts.push_back(std::move(text));
    prompts.tokens.push_back(*std::move(tokens));
  }
  return prompts;
}

// Returns the token that ends a document, if the tokenizer has one.
std::optional<data::Token> EndToken(const data::Tokenizer& tokenizer) {
  for (std::int64_t i = tokenizer.vocab_size() - 1; i >= 0; --i) {
    const auto token = static_cast<data::Token>(i);
    const absl::StatusOr<std::string> text = tokenizer.Decode({token});
    if (text.ok() && *text == kEndOfText) return token;
  }
  return std::nullopt;
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
  std::vector<std::string> prompts;
  reader.Texts("--prompt=ROMEO:", &prompts);
  reader.Path("--prompts=prompts.txt", &request.prompts);
  reader.Number("--tokens=200", 1, kTokensMax, &request.tokens);
  reader.Real("--temperature=0.8", 0, kTemperatureMax,
              &request.sampling.temperature);
  reader.Number("--top-k=40", 0, kTopKMax, &top_k);
  reader.Real("--top-p=0.9", 0, 1, &request.sampling.top_p);
  reader.Real("--min-p=0.05", 0, 1, &request.sampling.min_p);
  reader.Real("--repetition-penalty=1.2", 0, kPenaltyMax,
              &request.sampling.repetition_penalty);
  reader.Texts("--stop=TEXT", &request.stop);
  reader.Flag("--json", &request.json);
  reader.Number("--batch=8", 1, kBatchMax, &request.batch);
  reader.Flag("--ignore-end", &request.ignore_end);
  reader.Flag("--no-cache", &request.no_cache);
  reader.Number("--seed=1", 0, kSeedMax, &seed);
  reader.Number("--threads=2", 1, 1024, &request.threads);
  Arguments left(arguments);
  TROUPE_ASSIGN_OR_RETURN(request.help, reader.Read(left));
  if (request.help) return request;
  request.sampling.top_k = top_k;
  request.sampling.seed = static_cast<std::uint64_t>(seed);
  TROUPE_RETURN_IF_ERROR(CheckSavedRun(request.run, kGenerateRun));
  if (!prompts.empty() && !request.prompts.empty()) {
    return absl::InvalidArgumentError(
        "--prompt and --prompts: give one of them; a line of --prompts can be "
        "the other prompt");
  }
  if (!prompts.empty()) request.prompt = prompts.back();
  if (request.prompt.empty()) {
    return absl::InvalidArgumentError(
        "--prompt=: must have at least one character");
  }
  if (request.sampling.top_p == 0) {
    return absl::InvalidArgumentError(
        "--top-p=0: no token is left; must be above 0");
  }
  if (request.sampling.repetition_penalty == 0) {
    return absl::InvalidArgumentError(
        "--repetition-penalty=0: must be above 0; 1 is no penalty");
  }
  for (const std::string& stop : request.stop) {
    if (stop.empty()) {
      return absl::InvalidArgumentError(
          "--stop=: must have at least one character");
    }
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
  TROUPE_ASSIGN_OR_RETURN(const Prompts prompts,
                          ReadPrompts(request, files, tokenizer));
  TROUPE_ASSIGN_OR_RETURN(
      const std::unique_ptr<actors::InferenceSession> model,
      OpenSavedModel(std::move(run), splits, files, request.threads));
  nn::CachingAllocator memory;
  const nn::LogitsFn logits =
      [&](const nn::Tensor& tokens,
          const nn::TextPlaces& texts) -> absl::StatusOr<nn::Tensor> {
    TROUPE_ASSIGN_OR_RETURN(const nn::Tensor output, model->Run(tokens, texts));
    return nn::ConvertFloats(output, nn::DType::kF32, memory);
  };
  nn::GenerateOptions options;
  options.tokens = request.tokens;
  options.context = loaded.config.data.text.context;
  options.batch = std::min<std::int64_t>(
      request.batch, static_cast<std::int64_t>(prompts.texts.size()));
  options.cache = !request.no_cache;
  if (!request.ignore_end) options.end_token = EndToken(tokenizer);
  options.sampling = request.sampling;
  GeneratedTexts texts(
      prompts.texts, tokenizer,
      {request.json, request.stop, request.tokens, prompts.names, note}, write);
  TROUPE_RETURN_IF_ERROR(
      nn::GenerateTexts(logits, memory, prompts.tokens, options, texts));
  return texts.status();
}

Command GenerateCommand() {
  return {"generate", "--checkpoint=DIR [--config=FILE] [--prompt=TEXT]",
          "text of a language model", GenerateHelp, RunGenerate};
}

}  // namespace troupe::tools
