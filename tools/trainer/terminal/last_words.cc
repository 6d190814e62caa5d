#include "tools/trainer/terminal/last_words.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

#include "tools/trainer/terminal/exit_codes.h"
#include "tools/trainer/terminal/output_writer.h"

namespace troupe::tools {
namespace {

void Say(const char* what) {
  pollfd entry = {STDERR_FILENO, POLLOUT, 0};
  if (poll(&entry, 1, kReaderPatienceMsMax) == 0) return;  // has no reader
  std::fprintf(stderr,
               "trainer: ended by an exception: %s; where memory ran out, "
               "raise its limit (ulimit -v) or use fewer ranks\n",
               what);
}

// Returns only in the first thread that calls it. When memory runs out, several
// threads may call it; the others wait for the end of the process, so that one
// line is printed.
void BeTheFirst() {
  static std::atomic<std::thread::id> first;
  std::thread::id before;
  if (first.compare_exchange_strong(before, std::this_thread::get_id())) return;
  // Reporting has failed itself.
  if (before == std::this_thread::get_id()) std::_Exit(kExitFailed);
  while (true) pause();
}

[[noreturn]] void OnTerminate() {
  BeTheFirst();
  try {
    const std::exception_ptr exception = std::current_exception();
    if (exception != nullptr) std::rethrow_exception(exception);
    Say("none is known");
  } catch (const std::exception& e) {
    Say(e.what());
  } catch (...) {
    Say("not a std::exception");
  }
  std::_Exit(kExitFailed);
}

}  // namespace

void SayLastWords() { std::set_terminate(OnTerminate); }

}  // namespace troupe::tools
