#define TROUPE_KERNELS KernelsPlain
#include "comm/reduction/reduction_kernels_impl.h"
