// Declares names that the usage comments in actors/launchers/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_ACTORS_LAUNCHERS_H_
#define TESTS_USAGE_WORDS_ACTORS_LAUNCHERS_H_

#include <unistd.h>

#include <iostream>
#include <string>

#include "actors/job.h"
#include "actors/launchers/launchers.h"
#include "actors/launchers/variables.h"
#include "actors/program/run_program.h"
#include "base/check.h"
#include "base/processes/child_process.h"

namespace troupe::actors::usage {

namespace cluster_from_environment_h {
JobSpec MyJob();
extern JobSpec spec;
void Show(const std::string& text);
}  // namespace cluster_from_environment_h

namespace foreign_launchers_h {
extern const Variables environment;
void Show(const std::string& name);
}  // namespace foreign_launchers_h

namespace local_launch_h {
extern const Placement placement;
extern base::ChildSpec child;
}  // namespace local_launch_h

namespace self_launch_h {
extern ProgramSpec spec;
}

namespace half_launched_h {
extern const Variables environment;
}

}  // namespace troupe::actors::usage

#endif  // TESTS_USAGE_WORDS_ACTORS_LAUNCHERS_H_
