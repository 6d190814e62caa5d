// Writes what a trained model answers: the tensors "input" and "output" of all
// training samples, in the order of the data, by the newest checkpoint of a
// configuration.
//
//   answers run.toml answers.safetensors

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "actors/inference/export_model.h"
#include "base/check.h"
#include "base/files/file_system.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/run/spec_builder.h"

namespace troupe::tools {
namespace {

absl::Status WriteAnswers(const std::string& config, const std::string& out) {
  base::PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const LoadedConfig loaded,
                          LoadConfig(files, config, /*settings=*/{}));
  TROUPE_ASSIGN_OR_RETURN(const data::DataSplits splits,
                          OpenData(loaded, files, [](const std::string&) {}));
  TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
                          BuildSpec(loaded, splits, files));
  spec.test = nullptr;
  return actors::ExportAnswers(spec, static_cast<int>(spec.train->size()), out);
}

}  // namespace
}  // namespace troupe::tools

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: answers CONFIG OUT\n");
    return 2;
  }
  const absl::Status status = troupe::tools::WriteAnswers(argv[1], argv[2]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "answers: %s\n", std::string(status.message()).c_str());
  return 1;
}
