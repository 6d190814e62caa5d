#include "tools/report/report_page.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/check.h"

namespace troupe::tools {
namespace {

// Placeholders in the template; each occurs once.
constexpr absl::string_view kTitleMark = "{{title}}";
constexpr absl::string_view kDataMark = "{{data}}";

std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"},
                                    {"<", "&lt;"},
                                    {">", "&gt;"},
                                    {"\"", "&quot;"},
                                    {"'", "&#39;"}});
}

}  // namespace

std::string ReportPage(absl::string_view title, absl::string_view data) {
  const absl::string_view page = EmbeddedPage();
  const std::size_t title_at = page.find(kTitleMark);
  const std::size_t data_at = page.find(kDataMark);
  TROUPE_CHECK(title_at < data_at && data_at != absl::string_view::npos,
               "the template has both marks, in this order");
  const std::size_t after_title = title_at + kTitleMark.size();
  return absl::StrCat(page.substr(0, title_at), Escaped(title),
                      page.substr(after_title, data_at - after_title), data,
                      page.substr(data_at + kDataMark.size()));
}

}  // namespace troupe::tools
