#define TROUPE_KERNELS KernelsAvx2
#include "comm/reduction/reduction_kernels_impl.h"
