// Declares names that the usage comments in data/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_DATA_H_
#define TESTS_USAGE_WORDS_DATA_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/files/file_system.h"
#include "data/batch.h"
#include "data/dataset.h"
#include "data/registry.h"
#include "data/sampler.h"
#include "nn/tensor/allocator.h"
#include "nn/tensor/tensor.h"

namespace troupe::data::usage {

extern base::FileSystem& files;
extern nn::Allocator& allocator;
extern const DatasetPtr train;
extern const std::uint64_t seed;
extern const int rank;

namespace batch_h {
extern const std::vector<Batch> batches;
extern const int m;
}  // namespace batch_h

namespace batch_source_h {
extern const SamplerOptions sampler_options;
extern const std::int64_t steps_committed;
}  // namespace batch_source_h

namespace content_hash_h {
extern const absl::string_view text;
extern const std::int64_t label;
extern DataSplits splits;
}  // namespace content_hash_h

namespace dataset_h {
extern const absl::Span<const std::int64_t> indices;
}

namespace distributed_sampler_h {
extern const std::int64_t epochs;
void Use(std::int64_t index);
}  // namespace distributed_sampler_h

namespace gzip_h {
extern const std::vector<std::uint8_t> bytes;
}

namespace image_dataset_h {
extern const std::vector<std::uint8_t> pixels, labels;
}

namespace in_memory_dataset_h {
extern const nn::Tensor inputs, targets;
}

namespace sample_weights_h {
extern SamplerOptions options;
}

namespace training_part_h {
extern const DatasetOptions options;
extern const std::function<absl::StatusOr<DatasetPtr>()> open_plain;
extern DataSplits splits;
}  // namespace training_part_h

namespace transform_h {
extern const DatasetPtr raw;
}

}  // namespace troupe::data::usage

#endif  // TESTS_USAGE_WORDS_DATA_H_
