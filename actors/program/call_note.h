// The call of a group that a rank's program is in, for errors: what it is, and
// its line in the program. Other threads read it while the rank waits.
//
//   CallNote note;
//   const CallNote::Scope scope(note, "all_reduce", {"train.cc", 12});
//   note.ToString();                      // "all_reduce() at train.cc:12"
//
// Threads: one writes, any number read. A reader that comes between two calls
// may see the line of one with the name of the other.

#ifndef ACTORS_PROGRAM_CALL_NOTE_H_
#define ACTORS_PROGRAM_CALL_NOTE_H_

#include <atomic>
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

class CallNote {
 public:
  // Notes a call until the end of a block. `name` is a literal.
  class Scope {
   public:
    Scope(CallNote& note, const char* name, const CallPlace& place)
        : note_(note) {
      note_.file_.store(place.file, std::memory_order_relaxed);
      note_.line_.store(place.line, std::memory_order_relaxed);
      note_.name_.store(name, std::memory_order_release);
    }
    ~Scope() { note_.name_.store(nullptr, std::memory_order_release); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    CallNote& note_;
  };

  // Empty outside of calls.
  std::string ToString() const {
    const char* const name = name_.load(std::memory_order_acquire);
    if (name == nullptr) return "";
    absl::string_view file = file_.load(std::memory_order_relaxed);
    const std::size_t slash = file.rfind('/');
    if (slash != absl::string_view::npos) file.remove_prefix(slash + 1);
    return absl::StrCat(name, "() at ", file, ":",
                        line_.load(std::memory_order_relaxed));
  }

 private:
  std::atomic<const char*> name_{nullptr};
  std::atomic<const char*> file_{""};
  std::atomic<int> line_{0};
};

}  // namespace troupe::actors

#endif  // ACTORS_PROGRAM_CALL_NOTE_H_
