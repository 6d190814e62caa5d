#define TROUPE_KERNELS KernelsPlain
#include "comm/reduction_kernels_impl.h"
