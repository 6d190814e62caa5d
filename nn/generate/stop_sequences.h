// Ends a generated text before the first of some texts, such as "\n\n" or
// "User:", while it comes piece by piece.
//
//   StopSequences stop({"\n\n", "User:"});
//   stop.Add("Yes.\n");                  // "Yes."; "\n" may begin a stop
//   stop.Add("No.");                     // "\nNo."
//   stop.Add("\n\nUser: and so on");     // "", and from now on
//   stop.found();                        // true
//   stop.Rest();                         // what was held back at the end
//
// A piece may have a part of a stop sequence, or several of them; what might
// be the begin of one is held back until it is known. The sequence itself is
// not of the text, as in other programs' `stop`.
//
// Cost: linear in the text, times the number of stop sequences.

#ifndef NN_GENERATE_STOP_SEQUENCES_H_
#define NN_GENERATE_STOP_SEQUENCES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace troupe::nn {

class StopSequences {
 public:
  // Empty sequences are left out. None: the text never ends here.
  explicit StopSequences(std::vector<std::string> sequences);

  // Adds a piece of the text. Returns what is certain to come before a stop
  // sequence and was not returned before.
  std::string Add(absl::string_view piece);
  // Returns what was held back, at the end of the text.
  std::string Rest();
  bool found() const { return found_; }

 private:
  // Returns how many bytes at the end of `held_` may begin a stop sequence.
  std::size_t Undecided() const;

  std::vector<std::string> sequences_;
  std::string held_;
  bool found_ = false;
};

}  // namespace troupe::nn

#endif  // NN_GENERATE_STOP_SEQUENCES_H_
