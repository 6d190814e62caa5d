#define TROUPE_KERNELS KernelsAvx512
#include "comm/reduction_kernels_impl.h"
