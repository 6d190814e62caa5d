// The call of a group that a rank's program is in, for errors: what it is, and
// its line in the program. Other threads read it while the rank waits.
//
//   CallNote note;
//   const CallNote::Scope scope(note, "all_reduce", CallPlace{"train.cc", 12});
//   note.ToString();                // "is in all_reduce() at train.cc:12"
//
// Threads: one writes, any number read. A reader that comes between two calls
// may see the line of one with the name of the other.

#ifndef ACTORS_PROGRAM_CALL_NOTE_H_
#define ACTORS_PROGRAM_CALL_NOTE_H_

#include <atomic>
#include <cstddef>
#include <exception>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace troupe::actors {

// A line of a program. As the default of a function's last parameter, Here() is
// the line that calls the function (std::source_location of C++20).
struct CallPlace {
  const char* file = "";
  int line = 0;

  static CallPlace Here(const char* file = __builtin_FILE(),
                        int line = __builtin_LINE()) {
    return {file, line};
  }
};

// Returns "Send() at train.cc:12", or "Send()" for a call without a place.
inline std::string CallText(const char* name, const CallPlace& place) {
  absl::string_view file = place.file;
  const std::size_t slash = file.rfind('/');
  if (slash != absl::string_view::npos) file.remove_prefix(slash + 1);
  if (file.empty()) return absl::StrCat(name, "()");
  return absl::StrCat(name, "() at ", file, ":", place.line);
}

// Whether a call returns when it has done its work, or only starts it.
enum class CallKind { kWaits, kStarts };

class CallNote {
 public:
  // Notes a call until the end of a block. `name` is a literal. If an exception
  // leaves the block, the call has failed, which remains noted until the next;
  // so does the start of work.
  class Scope {
   public:
    Scope(CallNote& note, const char* name, const CallPlace& place,
          CallKind kind = CallKind::kWaits)
        : note_(note), kind_(kind), exceptions_(std::uncaught_exceptions()) {
      note_.file_.store(place.file, std::memory_order_relaxed);
      note_.line_.store(place.line, std::memory_order_relaxed);
      note_.name_.store(name, std::memory_order_relaxed);
      note_.state_.store(State::kIn, std::memory_order_release);
    }
    ~Scope() {
      note_.state_.store(std::uncaught_exceptions() > exceptions_
                             ? State::kFailed
                         : kind_ == CallKind::kStarts ? State::kStarted
                                                      : State::kNone,
                         std::memory_order_release);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    CallNote& note_;
    const CallKind kind_;
    const int exceptions_;
  };

  // Returns "is in Send() at train.cc:12", "has failed in" after a call that
  // failed, or "has come past" after one that only started its work. Empty
  // otherwise.
  std::string ToString() const {
    const State state = state_.load(std::memory_order_acquire);
    if (state == State::kNone) return "";
    const CallPlace place = {file_.load(std::memory_order_relaxed),
                             line_.load(std::memory_order_relaxed)};
    const char* const verb = state == State::kIn       ? "is in "
                             : state == State::kFailed ? "has failed in "
                                                       : "has come past ";
    return absl::StrCat(verb,
                        CallText(name_.load(std::memory_order_relaxed), place));
  }

 private:
  enum class State { kNone, kIn, kFailed, kStarted };

  std::atomic<State> state_{State::kNone};
  std::atomic<const char*> name_{""};
  std::atomic<const char*> file_{""};
  std::atomic<int> line_{0};
};

}  // namespace troupe::actors

#endif  // ACTORS_PROGRAM_CALL_NOTE_H_
