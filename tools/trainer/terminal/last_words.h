// What the program says of an exception that nothing handles: memory that runs
// out while an error is being reported, say.
//
//   SayLastWords();        // at the start of main()
//   throw std::bad_alloc();
//   // trainer: ended by an exception: std::bad_alloc; ...
//
// It is one line, as of every failure, and the process ends with kExitFailed.
// Nothing is asked of the system for that. Threads: any may throw.

#ifndef TOOLS_TRAINER_TERMINAL_LAST_WORDS_H_
#define TOOLS_TRAINER_TERMINAL_LAST_WORDS_H_

namespace troupe::tools {

void SayLastWords();

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_TERMINAL_LAST_WORDS_H_
