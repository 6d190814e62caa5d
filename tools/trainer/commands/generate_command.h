// `trainer generate`: text from the language model of a checkpoint.
//
//   GenerateRequest request;
//   request.run.checkpoint = "checkpoints/char_gpt";
//   request.prompt = "ROMEO:";
//   TROUPE_RETURN_IF_ERROR(
//       GenerateText(loaded, request, files, write, note));

#ifndef TOOLS_TRAINER_COMMANDS_GENERATE_COMMAND_H_
#define TOOLS_TRAINER_COMMANDS_GENERATE_COMMAND_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/files/file_system.h"
#include "nn/generate/token_choice.h"
#include "tools/trainer/commands/command.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/run/saved_run.h"
#include "tools/trainer/run/spec_builder.h"

namespace troupe::tools {

struct GenerateRequest {
  bool help = false;
  SavedRun run;
  std::string prompt = "\n";
  std::string prompts;  // file with a prompt in each line; empty: `prompt`
  int tokens = 200;
  std::vector<std::string> stop;  // a text ends before the first of these
  bool json = false;
  int batch = 1;            // number of prompts at a time
  bool ignore_end = false;  // whether <|endoftext|> ends no text
  bool no_cache = false;
  int threads = 1;
  nn::SamplingOptions sampling;  // `seed` is that of the first prompt
};

// Parses what follows `generate` on the command line.
//   kInvalidArgument: one line that says what was not understood.
absl::StatusOr<GenerateRequest> ParseGenerate(
    const std::vector<std::string>& arguments);

std::string GenerateHelp();

// Writes each prompt, and each token that the model generates as soon as it is
// known; with `json`, an object for each prompt at its end. Ends early if
// `write` returns false.
//   kInvalidArgument: `loaded` is no text model, or another model than the
//     checkpoint's; the tokenizer has no token for a part of the prompt.
//   kNotFound, kDataLoss: there is no checkpoint, or it is damaged.
absl::Status GenerateText(const LoadedConfig& loaded,
                          const GenerateRequest& request,
                          base::FileSystem& files,
                          const std::function<bool(absl::string_view)>& write,
                          const NoteFn& note);

Command GenerateCommand();

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_GENERATE_COMMAND_H_
