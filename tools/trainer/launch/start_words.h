// How this run was started, in words that start it again.
//
//   const StartWords words = WordsOfStart("bin/trainer", placement,
//   environment,
//                                         /*options=*/{"--certs=certs"});
//   words.before;   // "mpirun -n 2 bin/trainer"
//   words.options;  // " --certs=certs"
//   words.where;    // "": once
//
// Pure. Quoted for the shell.

#ifndef TOOLS_TRAINER_LAUNCH_START_WORDS_H_
#define TOOLS_TRAINER_LAUNCH_START_WORDS_H_

#include <string>
#include <vector>

#include "tools/trainer/launch/launchers.h"
#include "tools/trainer/launch/variables.h"

namespace troupe::tools {

// What `trainer launch` was called by, up to "--".
inline constexpr char kLaunchedByVariable[] = "TROUPE_LAUNCHED_BY";

struct StartWords {
  std::string before;   // of "train"
  std::string options;  // of train, each behind a space
  // Where all the same is to be started: "on each node, as before"; empty: here
  // alone.
  std::string where;
};

// A word as the shell reads it back.
std::string Quoted(const std::string& word);
// Words between spaces.
std::string Quoted(const std::vector<std::string>& words);

// `program` is what this one was called by, `options` are those of train that
// say nothing of what is trained.
StartWords WordsOfStart(const std::string& program, const Placement& placement,
                        const Variables& environment,
                        const std::vector<std::string>& options);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_LAUNCH_START_WORDS_H_
