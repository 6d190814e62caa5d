// `trainer export`: the weights of a checkpoint as one safetensors file, for
// other programs.
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
#include "base/file_system.h"

namespace troupe::tools {

// Values of ExportOptions::format.
inline constexpr char kPyTorchFormat[] = "pytorch";
inline constexpr char kTransformersFormat[] = "transformers";

struct ExportOptions {
  bool help = false;
  std::string checkpoint;  // a run's folder, or one of its steps'
  std::string out;
  std::string format = kPyTorchFormat;
  std::string dtype;  // "f32", "bf16", ...; empty: as they are saved
};

// What follows `export` on the command line.
//   kInvalidArgument: one line that says what was not understood.
absl::StatusOr<ExportOptions> ParseExport(
    const std::vector<std::string>& arguments);

std::string ExportHelp();

// Writes the file, over one that is there. Returns what to say to the user.
//   kNotFound, kDataLoss: there is no checkpoint, or it is damaged.
//   kInvalidArgument: `transformers` asks for a model that this is not.
absl::StatusOr<std::string> ExportWeights(const ExportOptions& options,
                                          base::FileSystem& files);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_EXPORT_COMMAND_H_
