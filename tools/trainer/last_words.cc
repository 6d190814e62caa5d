#include "tools/trainer/last_words.h"

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "tools/trainer/exit_codes.h"

namespace troupe::tools {
namespace {

void Say(const char* what) {
  std::fprintf(stderr,
               "trainer: ended by an exception: %s; where memory ran out, "
               "raise its limit (ulimit -v) or use fewer ranks\n",
               what);
}

[[noreturn]] void OnTerminate() {
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
