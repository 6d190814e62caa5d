#include "troupe/trainer/predictions.h"

#include <cstddef>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/tensor/caching_allocator.h"

namespace troupe {
namespace {

// Position of the output of a sample.
struct RowPlace {
  const PredictedBatch* batch = nullptr;
  std::int64_t row = 0;
};

absl::Status CheckRows(const PredictedBatch& batch, const nn::Tensor& first) {
  const nn::Tensor& output = batch.output;
  const auto samples = static_cast<std::int64_t>(batch.samples.size());
  const bool by_row = output.shape().rank() > 0 && output.shape()[0] == samples;
  nn::Shape row = first.shape();
  if (by_row && row.rank() > 0) row.set(0, samples);
  if (by_row && output.shape() == row && output.dtype() == first.dtype()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "batch ", batch.batch_idx, " of replica ", batch.replica, " has ",
      samples, " samples and the output ", output.ToString(),
      by_row ? absl::StrCat(", where the first batch has ", first.ToString())
             : "",
      "; read Predictions::batches, since the outputs have no equal rows for "
      "samples"));
}

}  // namespace

std::vector<nn::Tensor> Predictions::OfReplica(int replica) const {
  std::vector<nn::Tensor> outputs;
  for (const PredictedBatch& batch : batches) {
    if (batch.replica == replica) outputs.push_back(batch.output);
  }
  return outputs;
}

absl::StatusOr<nn::Tensor> Predictions::InOrder() const {
  std::size_t size = 0;
  for (const PredictedBatch& batch : batches) size += batch.samples.size();
  if (size == 0) {
    return absl::FailedPreconditionError(
        "there are no predictions to put in order; let Predict() return some: "
        "TrainerOptions::limit_predict_batches, return_predictions");
  }
  std::vector<RowPlace> places(size);
  for (const PredictedBatch& batch : batches) {
    TROUPE_RETURN_IF_ERROR(CheckRows(batch, batches[0].output));
    for (std::size_t row = 0; row < batch.samples.size(); ++row) {
      const auto sample = static_cast<std::size_t>(batch.samples[row]);
      if (sample < size) {
        places[sample] = {&batch, static_cast<std::int64_t>(row)};
      }
    }
  }
  for (std::size_t i = 0; i < size; ++i) {
    if (places[i].batch != nullptr) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "the prediction of sample ", i,
        " is in another process, which has its replica; write the predictions "
        "of each process by Callback::OnPredictBatchEnd()"));
  }
  nn::Shape shape = batches[0].output.shape();
  shape.set(0, static_cast<std::int64_t>(size));
  nn::CachingAllocator memory;
  TROUPE_ASSIGN_OR_RETURN(
      nn::Tensor all,
      nn::Tensor::Create(shape, batches[0].output.dtype(), memory));
  const std::size_t row_bytes = all.bytes() / size;
  auto* to = static_cast<char*>(all.raw());
  for (const RowPlace& place : places) {
    const auto* from = static_cast<const char*>(place.batch->output.raw());
    std::memcpy(to, from + place.row * row_bytes, row_bytes);
    to += row_bytes;
  }
  return all;
}

}  // namespace troupe
