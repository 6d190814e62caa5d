// The command that started this run, in a form that starts it again.
//
//   const std::vector<std::string> options = {"--certs=certs"};
//   const StartWords words =
//       WordsOfStart("bin/trainer", placement, environment, options);
//   words.before;   // "mpirun -n 2 bin/trainer"
//   words.options;  // " --certs=certs"
//   words.where;    // "": once
//
// Pure. The words are quoted for the shell.

#ifndef TOOLS_TRAINER_LAUNCH_START_WORDS_H_
#define TOOLS_TRAINER_LAUNCH_START_WORDS_H_

#include <string>
#include <vector>

#include "actors/launchers/launchers.h"
#include "actors/launchers/variables.h"

namespace troupe::tools {

// Command line of `trainer launch`, up to "--".
inline constexpr char kLaunchedByVariable[] = "TROUPE_LAUNCHED_BY";

struct StartWords {
  std::string before;   // words before "train"
  std::string options;  // options of train, each behind a space
  // Where to start the same command: "on each node, as before"; empty: only
  // here.
  std::string where;
};

// Returns a word quoted for the shell.
std::string Quoted(const std::string& word);
// Returns the quoted words, separated by spaces.
std::string Quoted(const std::vector<std::string>& words);

// Returns the words. `program` is the path that this program was called by;
// `options` are the options of train that are no settings of the configuration.
StartWords WordsOfStart(const std::string& program,
                        const actors::Placement& placement,
                        const actors::Variables& environment,
                        const std::vector<std::string>& options);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_LAUNCH_START_WORDS_H_
