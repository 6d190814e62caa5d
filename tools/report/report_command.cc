#include "tools/report/report_command.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/format_bytes.h"
#include "tools/report/report_data.h"
#include "tools/report/report_page.h"
#include "tools/report/run_reader.h"
#include "tools/trainer/terminal/options_reader.h"

namespace troupe::tools {
namespace {

constexpr char kHelp[] =
    R"(trainer report RUN-DIR [--output=FILE]

Makes one HTML page of a run. It shows the timeline of each rank in a recorded
step, beside the planned step; what ranks waited for, and communication that no
computation overlapped; the critical path; memory over time; and the curves of
loss, learning rate, gradients and throughput. The page is self-contained and
loads nothing: it can be sent, printed, or kept beside the checkpoint.

RUN-DIR is the folder of --run-dir=DIR or log.run_dir of trainer train:

  run.json       facts about the run, and the estimated cost of each stage
  plan.json      mesh, stages, buckets, tables
  metrics.jsonl  about 2,000 steps of the run, and its evaluations
  trace.json     the timeline of trace.steps steps, from trace.first_step on;
                 ui.perfetto.dev opens it, too

Options:
  --output=FILE  Path of the page: RUN-DIR/report.html.
  --help         This text.

For example, how two stages of a small GPT wait for each other:

  trainer train --set model.kind=gpt_nano --set data.kind=text \
      --set model.tie_head=false --set mesh.pp=2 --set mesh.schedule=zb_h1 \
      --set train.micro_batch_size=8 --set train.steps=50 --run-dir=runs/nano
  trainer report runs/nano
)";

constexpr char kPageName[] = "report.html";

}  // namespace

std::string ReportHelp() { return kHelp; }

absl::StatusOr<ReportRequest> ParseReport(
    const std::vector<std::string>& arguments) {
  ReportRequest request;
  std::vector<std::string> folders;
  OptionsReader reader("report");
  reader.Path("--output=report.html", &request.output);
  reader.Others(&folders);
  Arguments left(arguments);
  TROUPE_ASSIGN_OR_RETURN(request.help, reader.Read(left));
  if (request.help) return request;
  if (folders.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("report takes one run folder, not ", folders.size(),
                     "; write trainer report runs/mnist, say"));
  }
  request.run_dir = folders[0];
  return request;
}

absl::StatusOr<std::string> WriteReport(const ReportRequest& request,
                                        base::FileSystem& files) {
  TROUPE_ASSIGN_OR_RETURN(const RunRecord run, ReadRun(files, request.run_dir));
  TROUPE_ASSIGN_OR_RETURN(const std::string data, ReportData(run));
  const std::string page =
      ReportPage(absl::StrCat(run.facts.model, " on ", run.facts.data), data);
  const std::string path = request.output.empty()
                               ? base::JoinPath(request.run_dir, kPageName)
                               : request.output;
  TROUPE_RETURN_IF_ERROR(base::WriteWholeFile(files, path, page));
  std::string text =
      absl::StrCat("wrote ", path, " (", base::FormatBytes(page.size()), ")\n");
  for (const std::string& note : run.notes) {
    absl::StrAppend(&text, "note: ", note, "\n");
  }
  return text;
}

}  // namespace troupe::tools
