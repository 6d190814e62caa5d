// The page of a run: one HTML file that contains its style, scripts and data,
// and makes no network requests.
//
//   const std::string html = ReportPage("gpt_nano on text", json);
//
// The template is page.html with page.css and the scripts beside it, put
// together when the program is built.

#ifndef TOOLS_REPORT_REPORT_PAGE_H_
#define TOOLS_REPORT_REPORT_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace troupe::tools {

// `title`: any text. `data`: JSON that is safe in a <script> element
// (report_data.h).
std::string ReportPage(absl::string_view title, absl::string_view data);

// The template, as text.
absl::string_view EmbeddedPage();

}  // namespace troupe::tools

#endif  // TOOLS_REPORT_REPORT_PAGE_H_
