#define TROUPE_KERNELS KernelsAvx2
#include "comm/reduction_kernels_impl.h"
