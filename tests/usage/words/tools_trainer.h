// Declares names that the usage comments in tools/trainer/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_TOOLS_TRAINER_H_
#define TESTS_USAGE_WORDS_TOOLS_TRAINER_H_

#include <poll.h>
#include <unistd.h>

#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "actors/job.h"
#include "actors/launchers/launchers.h"
#include "actors/launchers/variables.h"
#include "actors/planning/step_prediction.h"
#include "actors/spec/job_spec.h"
#include "base/files/file_system.h"
#include "base/tls/certificates.h"
#include "comm/tcp/tls_stream.h"
#include "data/registry.h"
#include "tools/trainer/commands/command.h"
#include "tools/trainer/commands/generated_texts.h"
#include "tools/trainer/commands/help.h"
#include "tools/trainer/commands/mesh_list.h"
#include "tools/trainer/commands/train_options.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/deepspeed/deepspeed_section.h"
#include "tools/trainer/doctor/doctor_command.h"
#include "tools/trainer/doctor/doctor_machine.h"
#include "tools/trainer/run/json_log.h"
#include "tools/trainer/run/run_folder.h"
#include "tools/trainer/run/run_observer.h"
#include "tools/trainer/run/run_totals.h"
#include "tools/trainer/run/spec_builder.h"
#include "tools/trainer/terminal/arguments.h"
#include "tools/trainer/terminal/display.h"
#include "tools/trainer/terminal/output_writer.h"
#include "tools/trainer/terminal/progress.h"
#include "tools/trainer/terminal/summary.h"
#include "tools/trainer/terminal/version.h"

namespace troupe::tools::usage {

extern base::FileSystem& files;
extern const LoadedConfig loaded;
extern TrainerConfig config;
extern const actors::JobSpec spec;
extern const std::unique_ptr<actors::Job> job;
extern const Progress progress;

namespace command_h {
std::string ExportHelp();
int RunExport(const std::vector<std::string>& arguments,
              const CommandContext& context);
}  // namespace command_h

namespace commands_h {
extern int argc;
extern char** argv;
extern const CommandContext context;
}  // namespace commands_h

namespace train_options_h {
extern const std::vector<std::string> arguments;
}

namespace arguments_h {
extern const std::vector<std::string> arguments;
}

namespace options_reader_h {
extern Arguments left;
}

namespace predict_command_h {
extern const std::function<bool(absl::string_view)> write;
extern const NoteFn note;
}  // namespace predict_command_h

namespace generate_command_h {
extern const std::function<bool(absl::string_view)> write;
extern const NoteFn note;
}  // namespace generate_command_h

namespace generated_texts_h {
extern const std::vector<std::string> prompts;
extern const data::Tokenizer& tokenizer;
extern const GeneratedTexts::Options options;
extern const std::function<bool(absl::string_view)> write;
extern const nn::LogitsFn logits;
extern nn::Allocator& memory;
extern const std::vector<std::vector<data::Token>> tokens;
extern const nn::GenerateOptions sampling;
}  // namespace generated_texts_h

namespace spec_builder_h {
extern const NoteFn note;
}

namespace plan_command_h {
extern Arguments left;
extern const std::function<bool(absl::string_view)> write;
extern const NoteFn note;
}  // namespace plan_command_h

namespace mesh_list_h {
extern const data::DataSplits splits;
extern const std::function<bool(absl::string_view)> write;
}  // namespace mesh_list_h

namespace mesh_choices_h {
extern const data::DataSplits splits;
extern const actors::MeshChoice choice;
extern const actors::JobSpec base;
}  // namespace mesh_choices_h

namespace deepspeed_config_h {
extern const std::string text;
}

namespace deepspeed_section_h {
extern nlohmann::ordered_json json;
extern std::vector<std::string> names;
}  // namespace deepspeed_section_h

namespace plan_text_h {
extern const actors::StepPrediction step;
extern const std::function<bool(absl::string_view)> write;
}  // namespace plan_text_h

namespace run_folder_h {
extern const RunFacts facts;
extern const pipeline::Plan plan;
extern RunObserver& observer;
extern const actors::ChromeTrace trace;
}  // namespace run_folder_h

namespace saved_run_h {
extern Arguments left;
extern const data::DataSplits splits;
extern const int threads;
}  // namespace saved_run_h

namespace display_h {
extern const std::function<int()> columns;
extern const Display::Write write;
}  // namespace display_h

namespace json_log_h {
extern const StepEntry entry;
}

namespace run_totals_h {
extern const actors::JobInfo info;
extern const actors::StepReport report;
}  // namespace run_totals_h

namespace run_observer_h {
extern Display& display;
extern JsonLog json_log;
extern const std::function<absl::Time()> now;
}  // namespace run_observer_h

}  // namespace troupe::tools::usage

#endif  // TESTS_USAGE_WORDS_TOOLS_TRAINER_H_
