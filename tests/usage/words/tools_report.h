// Declares names that the usage comments in tools/report/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_TOOLS_REPORT_H_
#define TESTS_USAGE_WORDS_TOOLS_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "base/files/file_system.h"
#include "nlohmann/json.hpp"
#include "pipeline/plan.h"
#include "tools/report/planned_step.h"
#include "tools/report/run_facts.h"
#include "tools/report/run_reader.h"
#include "tools/report/run_shape.h"
#include "tools/report/step_timeline.h"
#include "tools/report/trace_reader.h"
#include "tools/trainer/terminal/arguments.h"

namespace troupe::tools::usage {

extern const RunTrace trace;
extern const RunShape shape;
extern const RunTimeline timeline;
extern const pipeline::Plan plan;
extern base::FileSystem& files;
extern const absl::string_view text;

namespace critical_path_h {
extern const StepTimeline step;
}

namespace metrics_reader_h {
void Plot(std::int64_t step, std::optional<double> loss);
}

namespace planned_step_h {
extern const RunFacts facts;
}

namespace report_command_h {
extern Arguments left;
}

namespace report_data_h {
extern const RunRecord run;
}

namespace report_page_h {
extern const std::string json;
}

namespace run_reader_h {
void Print(const std::string& note);
}

namespace run_shape_h {
extern const Bar bar;
void Find(const RunShape::Source& source);
void Wait(int rank);
}  // namespace run_shape_h

namespace step_json_h {
extern const PlannedStep planned;
}

namespace trace_reader_h {
void Draw(const Bar& bar);
}

}  // namespace troupe::tools::usage

#endif  // TESTS_USAGE_WORDS_TOOLS_REPORT_H_
