#include "third_party/emulated_cuda/executor.h"
