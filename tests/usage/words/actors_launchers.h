// Declares names that the usage comments in actors/launchers/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_ACTORS_LAUNCHERS_H_
#define TESTS_USAGE_WORDS_ACTORS_LAUNCHERS_H_

#include <unistd.h>

#include <iostream>
#include <string>

#include "actors/job.h"
#include "actors/launchers/launchers.h"
#include "actors/launchers/variables.h"
#include "base/check.h"

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

namespace half_launched_h {
extern const Variables environment;
}

}  // namespace troupe::actors::usage

#endif  // TESTS_USAGE_WORDS_ACTORS_LAUNCHERS_H_
