// Reports an exception that nothing handles: running out of memory while an
// error is reported, say.
//
//   SayLastWords();        // at the start of main()
//   throw std::bad_alloc();
//   // trainer: ended by an exception: std::bad_alloc; ...
//
// The report is one line, as for every failure, and the process ends with
// kExitFailed. Reporting requests no memory from the system. Threads: any may
// throw.

#ifndef TOOLS_TRAINER_TERMINAL_LAST_WORDS_H_
#define TOOLS_TRAINER_TERMINAL_LAST_WORDS_H_

namespace troupe::tools {

void SayLastWords();

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_TERMINAL_LAST_WORDS_H_
