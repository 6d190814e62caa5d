// `trainer report`: makes one HTML page of a run folder.
//
//   TROUPE_ASSIGN_OR_RETURN(ReportRequest request, ParseReport(left.Rest()));
//   if (request.help) return ReportHelp();
//   TROUPE_ASSIGN_OR_RETURN(std::string text, WriteReport(request, files));

#ifndef TOOLS_REPORT_REPORT_COMMAND_H_
#define TOOLS_REPORT_REPORT_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/file_system.h"

namespace troupe::tools {

struct ReportRequest {
  bool help = false;
  std::string run_dir;
  std::string output;  // empty: report.html in the run folder
};

// Parses the arguments after `report` on the command line.
//   kInvalidArgument: one line that says what was not understood.
absl::StatusOr<ReportRequest> ParseReport(
    const std::vector<std::string>& arguments);

std::string ReportHelp();

// Writes the page; returns the text to print: its path, its size and notes.
//   Errors: those of ReadRun() and of the disk.
absl::StatusOr<std::string> WriteReport(const ReportRequest& request,
                                        base::FileSystem& files);

}  // namespace troupe::tools

#endif  // TOOLS_REPORT_REPORT_COMMAND_H_
