// Parses the options of one command into variables.
//
//   DoctorOptions options;
//   OptionsReader reader("doctor");
//   reader.Path("--certs=certs", &options.certs);
//   reader.List("--hosts=n1,n2", &options.hosts);
//   reader.Number("--port=29400", /*min=*/1, /*max=*/65535, &options.port);
//   reader.Flag("--listen", &options.listen);
//   TROUPE_ASSIGN_OR_RETURN(options.help, reader.Read(left));
//
// An option is declared by an example of its use, which is also what an error
// tells the user to write. Threads: one at a time.

#ifndef TOOLS_TRAINER_TERMINAL_OPTIONS_READER_H_
#define TOOLS_TRAINER_TERMINAL_OPTIONS_READER_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/trainer/terminal/arguments.h"

namespace troupe::tools {

// Checks the path that an option has as its value.
//   kInvalidArgument: one line that names the option, and what is wrong.
absl::Status CheckPathOption(absl::string_view option, absl::string_view path);

class OptionsReader {
 public:
  explicit OptionsReader(std::string command) : command_(std::move(command)) {}

  // Each `into` must outlive the reader, and keeps its value if the option is
  // not given.
  void Text(const std::string& example, std::string* into);
  // Declares an option whose value is a path (path_text.h).
  void Path(const std::string& example, std::string* into);
  // Declares an option that may be repeated; each adds a text.
  void Texts(const std::string& example, std::vector<std::string>* into);
  // Declares an option with texts between commas; empty ones are skipped.
  void List(const std::string& example, std::vector<std::string>* into);
  void Number(const std::string& example, int min, int max, int* into);
  void Real(const std::string& example, double min, double max, double* into);
  // Declares an option without a value.
  void Flag(const std::string& name, bool* into);
  // Makes "--" end the options; Read() leaves what follows. `words` are
  // appended to the error on an unknown option.
  void EndAtTwoDashes(std::string words) { rest_ = std::move(words); }

  // Collects arguments that are no options. `into` must outlive the reader.
  void Others(std::vector<std::string>* into) { others_ = into; }

  // Reads to the end of the options, or to --help or -h. Returns whether it
  // found one of the latter.
  //   kInvalidArgument: one line that names the option, and what is wrong.
  absl::StatusOr<bool> Read(Arguments& left);

 private:
  struct Known {
    std::string example;
    std::function<absl::Status(const std::string& value)> take;
  };

  absl::Status ReadOne(const Option& option, Arguments& left) const;

  const std::string command_;
  std::optional<std::string> rest_;  // set: "--" is allowed
  std::vector<std::string>* others_ = nullptr;
  std::map<std::string, Known> known_;
  std::map<std::string, bool*> flags_;
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_TERMINAL_OPTIONS_READER_H_
