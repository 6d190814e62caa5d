#include "data/subset.h"

#include <numeric>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

namespace troupe::data {
namespace {

class Subset : public Dataset {
 public:
  Subset(DatasetPtr dataset, std::vector<std::int64_t> samples)
      : Dataset(static_cast<std::int64_t>(samples.size()), dataset->spec()),
        dataset_(std::move(dataset)),
        samples_(std::move(samples)) {}

  absl::StatusOr<std::vector<std::int64_t>> Labels() const override {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<std::int64_t> all,
                            dataset_->Labels());
    std::vector<std::int64_t> labels;
    labels.reserve(samples_.size());
    for (std::int64_t sample : samples_) labels.push_back(all[sample]);
    return labels;
  }

 private:
  absl::Status Gather(absl::Span<const std::int64_t> indices,
                      std::int64_t epoch, const nn::Tensor& inputs,
                      const nn::Tensor& targets) const override {
    absl::InlinedVector<std::int64_t, 256> mapped;
    mapped.reserve(indices.size());
    for (std::int64_t index : indices) mapped.push_back(samples_[index]);
    return dataset_->Fill(mapped, epoch, inputs, targets);
  }

  const DatasetPtr dataset_;
  const std::vector<std::int64_t> samples_;
};

}  // namespace

absl::StatusOr<DatasetPtr> MakeSubset(DatasetPtr dataset,
                                      std::vector<std::int64_t> indices) {
  TROUPE_CHECK(dataset != nullptr, "a dataset to take samples of");
  for (std::int64_t index : indices) {
    if (index < 0 || index >= dataset->size()) {
      return absl::OutOfRangeError(absl::StrCat(
          "a subset asks for sample ", index, " of a dataset of ",
          dataset->size(), " samples; ask for 0 to its size() - 1"));
    }
  }
  return DatasetPtr(
      std::make_shared<Subset>(std::move(dataset), std::move(indices)));
}

absl::StatusOr<DatasetPtr> MakeSubset(DatasetPtr dataset, std::int64_t begin,
                                      std::int64_t end) {
  TROUPE_CHECK(dataset != nullptr, "a dataset to take samples of");
  if (begin < 0 || end < begin || end > dataset->size()) {
    return absl::OutOfRangeError(absl::StrCat(
        "a subset asks for samples [", begin, ", ", end, ") of a dataset of ",
        dataset->size(), " samples; ask for fewer"));
  }
  std::vector<std::int64_t> indices(end - begin);
  std::iota(indices.begin(), indices.end(), begin);
  return MakeSubset(std::move(dataset), std::move(indices));
}

}  // namespace troupe::data
