#include "tools/trainer/launch/start_words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "actors/launchers/foreign_launchers.h"

namespace troupe::tools {
namespace {

std::string Srun(const actors::Placement& placement) {
  return absl::StrCat(
      "srun --ntasks=", placement.processes,
      placement.nodes > 1 ? absl::StrCat(" --nodes=", placement.nodes) : "");
}

std::string Torchrun(const actors::Placement& placement) {
  return absl::StrCat(
      "torchrun --nproc-per-node=", placement.local_processes, " --no-python",
      placement.nodes > 1 ? absl::StrCat(" --nnodes=", placement.nodes) : "");
}

}  // namespace

std::string Quoted(const std::string& word) {
  constexpr char kPlain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
    return word;
  }
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

std::string Quoted(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    absl::StrAppend(&text, text.empty() ? "" : " ", Quoted(word));
  }
  return text;
}

StartWords WordsOfStart(const std::string& program,
                        const actors::Placement& placement,
                        const actors::Variables& environment,
                        const std::vector<std::string>& options) {
  StartWords words;
  words.before = Quoted(program);
  if (!options.empty()) words.options = absl::StrCat(" ", Quoted(options));
  if (environment.Has(kLaunchedByVariable)) {
    words.before = environment.Text(kLaunchedByVariable);
    if (placement.nodes > 1) words.where = "on each node, as before";
  } else if (placement.processes > 1) {
    if (placement.found_by == actors::kSlurm) {
      words.before = absl::StrCat(Srun(placement), " ", words.before);
    } else if (placement.found_by == actors::kOpenMpi) {
      words.before =
          absl::StrCat("mpirun -n ", placement.processes, " ", words.before);
    } else if (placement.found_by == actors::kTorchrun) {
      words.before = absl::StrCat(Torchrun(placement), " ", words.before);
      if (placement.nodes > 1) words.where = "on each node, as before";
    } else {
      words.where = absl::StrCat("in each of the ", placement.processes,
                                 " processes, with its own number");
    }
  }
  return words;
}

}  // namespace troupe::tools
