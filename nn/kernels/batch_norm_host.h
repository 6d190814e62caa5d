// The ops of batch norm that work on statistics alone, shared by the devices
// whose memory the host may access.
//
//   BindBatchNormStatsOnHost(ops);

#ifndef NN_KERNELS_BATCH_NORM_HOST_H_
#define NN_KERNELS_BATCH_NORM_HOST_H_

#include "nn/kernels/batch_norm.h"

namespace troupe::nn {

// Binds BatchNormStats and BatchNormRunningStats.
void BindBatchNormStatsOnHost(BatchNormKernels& ops);

}  // namespace troupe::nn

#endif  // NN_KERNELS_BATCH_NORM_HOST_H_
