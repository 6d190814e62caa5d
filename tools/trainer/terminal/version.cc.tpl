#include "tools/trainer/terminal/version.h"

const char* troupe::tools::Version() { return "{VERSION}"; }
