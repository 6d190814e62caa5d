// The standard input, output and error output of this process, one of which may
// be closed when it starts.
//
//   const bool had_output = OpenClosedStreams().output;   // first of all
//
// A descriptor that is closed would be given to the next file or pipe, into
// which the program's output would then go.

#ifndef TOOLS_TRAINER_TERMINAL_STANDARD_STREAMS_H_
#define TOOLS_TRAINER_TERMINAL_STANDARD_STREAMS_H_

#include <string>

namespace troupe::tools {

// Whether each stream was open.
struct StandardStreams {
  bool input = true;
  bool output = true;
  bool error = true;
};

// Opens /dev/null for each standard stream that is closed, and returns which
// were open. Called before anything opens a file.
StandardStreams OpenClosedStreams();

// Whether a terminal of this kind, the value of $TERM, can erase and rewrite a
// line. "dumb" and "emacs" terminals (an editor's shell, a log) cannot; nothing
// is known of "unknown" ones, or of one without a name.
bool CanRewriteLines(const std::string& term);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_TERMINAL_STANDARD_STREAMS_H_
