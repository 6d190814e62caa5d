#include "tools/trainer/version.h"

const char* troupe::tools::Version() { return "{VERSION}"; }
