#define TROUPE_KERNELS KernelsAvx512
#include "comm/reduction/reduction_kernels_impl.h"
