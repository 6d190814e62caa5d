// Exit codes of the program: the one list that main(), --help and
// docs/configuration.md use.
//
//   return kExitStopped;
//   for (const ExitMeaning& exit : kExitMeanings) {
//     std::cout << exit.code << ": " << exit.meaning << "\n";
//   }

#ifndef TOOLS_TRAINER_TERMINAL_EXIT_CODES_H_
#define TOOLS_TRAINER_TERMINAL_EXIT_CODES_H_

namespace troupe::tools {

enum ExitCode {
  kExitOk = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitStopped = 3,
  kExitAtOnce = 130,  // code that shells report after a SIGINT
};

struct ExitMeaning {
  ExitCode code;
  const char* meaning;  // a sentence or two
};

inline constexpr ExitMeaning kExitMeanings[] = {
    {kExitOk, "The run is complete, or help was printed."},
    {kExitFailed,
     "The run failed. One line on the error output says what, where and what "
     "to do."},
    {kExitUsage,
     "Options or configuration are wrong, as one line on the error output "
     "says. Nothing has been trained."},
    {kExitStopped,
     "The run was stopped before its end: by Ctrl-C, SIGTERM, SIGUSR1, "
     "SIGUSR2, SIGXCPU, a closed terminal, or because nobody reads its output "
     "any more. Its step "
     "is "
     "finished, and saved where checkpoint.dir is set; --resume goes on."},
    {kExitAtOnce,
     "Ctrl-C, when the run was stopping already. Nothing more was "
     "saved."},
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_TERMINAL_EXIT_CODES_H_
