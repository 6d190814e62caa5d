// Declares names that the usage comments in tools/trainer/config/ leave
// undeclared.

#ifndef TESTS_USAGE_WORDS_TOOLS_TRAINER_CONFIG_H_
#define TESTS_USAGE_WORDS_TOOLS_TRAINER_CONFIG_H_

#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "actors/job.h"
#include "actors/spec/job_spec.h"
#include "base/files/file_system.h"
#include "data/dataset.h"
#include "nn/modules/module.h"
#include "nn/serialize/weight_file.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools::usage {

extern base::FileSystem& files;
extern const LoadedConfig loaded;
extern TrainerConfig config;
extern actors::JobSpec spec;
extern const std::unique_ptr<actors::Job> job;

namespace config_h {
extern const std::vector<Setting> settings;
}

namespace config_blame_h {
extern const absl::Status status;
}

namespace loss_kinds_h {
extern const data::SampleSpec sample;
}

namespace pipeline_options_h {
extern const data::SampleSpec sample;
extern actors::JobSpec spec;
}  // namespace pipeline_options_h

namespace optimizer_kinds_h {
extern LoadedConfig& parsed;
}

namespace weight_advice_h {
extern const nn::WeightFile weights;
extern nn::Module* const model;
extern const data::SampleSpec sample;
}  // namespace weight_advice_h

}  // namespace troupe::tools::usage

#endif  // TESTS_USAGE_WORDS_TOOLS_TRAINER_CONFIG_H_
