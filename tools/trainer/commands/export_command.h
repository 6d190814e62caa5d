// `trainer export`: the weights of a checkpoint as a safetensors file, a file
// of torch.save or a folder of Hugging Face's, for other programs.
//
//   ExportOptions options;
//   options.checkpoint = "checkpoints/glyphs";   // its newest, or a step's
//   options.out = "glyphs.safetensors";
//   TROUPE_ASSIGN_OR_RETURN(std::string text, ExportWeights(options, files));
//   std::cout << text;

#ifndef TOOLS_TRAINER_COMMANDS_EXPORT_COMMAND_H_
#define TOOLS_TRAINER_COMMANDS_EXPORT_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/file_system.h"
#include "tools/trainer/commands/command.h"

namespace troupe::tools {

// Values of ExportOptions::format.
inline constexpr char kSafetensorsFormat[] = "safetensors";
inline constexpr char kPyTorchFormat[] = "pytorch";  // the same
inline constexpr char kPtFormat[] = "pt";
inline constexpr char kHfFormat[] = "hf";
inline constexpr char kTransformersFormat[] = "transformers";

struct ExportOptions {
  bool help = false;
  std::string checkpoint;  // folder of a run, or of one of its steps
  std::string out;
  std::string format = kSafetensorsFormat;
  std::string dtype;  // "f32", "bf16", ...; empty: as saved
};

// Parses what follows `export` on the command line.
//   kInvalidArgument: one line that says what was not understood.
absl::StatusOr<ExportOptions> ParseExport(
    const std::vector<std::string>& arguments);

std::string ExportHelp();

// Writes the file, replacing an existing one. Returns the text to show to the
// user.
//   kNotFound, kDataLoss: there is no checkpoint, or it is damaged.
//   kInvalidArgument: the format is "transformers" or "hf", which do not have
//     such a model.
absl::StatusOr<std::string> ExportWeights(const ExportOptions& options,
                                          base::FileSystem& files);

Command ExportCommand();

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_EXPORT_COMMAND_H_
