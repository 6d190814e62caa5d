#include "nn/autograd/kv_cache.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::nn {

absl::Status KvCache::Begin(const TextPlaces& places) {
  if (places.texts < 1 || places.context < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a key-value cache of ", places.texts, " texts of ",
                     places.context, " tokens; both must be at least 1"));
  }
  for (const TextPlaces::Row& row : places.rows) {
    if (row.text >= -1 && row.text < places.texts && row.past >= 0 &&
        row.past < places.context) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "a key-value cache of ", places.texts, " texts of ", places.context,
        " tokens: there is no place for text ", row.text, " after ", row.past,
        " tokens; begin with more texts or a longer context"));
  }
  if (places.texts != places_.texts || places.context != places_.context) {
    layers_.clear();
  }
  places_ = places;
  next_ = 0;
  return absl::OkStatus();
}

absl::Status KvCache::CheckRows(const Tensor& x) const {
  if (x.dim(0) != static_cast<std::int64_t>(places_.rows.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the key-value cache has places for ", places_.rows.size(),
                     " samples, got ", x.dim(0)));
  }
  for (const TextPlaces::Row& row : places_.rows) {
    if (row.past + x.dim(1) <= places_.context) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the key-value cache has a context of ", places_.context,
                     " tokens, got ", x.dim(1), " after ", row.past));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> KvCache::Next(const Tensor& x, std::int64_t heads,
                                     std::int64_t width, Allocator& allocator) {
  TROUPE_RETURN_IF_ERROR(CheckRows(x));
  const Shape shape = {places_.texts, places_.context, heads, width};
  if (next_ == layers_.size()) {
    for (const TextPlaces::Row& row : places_.rows) {
      if (row.text < 0 || row.past == 0) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "text ", row.text, " goes on after ", row.past,
          " tokens, of which the key-value cache has none; begin it anew"));
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor layer,
                            Tensor::Create(shape, x.dtype(), allocator));
    layers_.push_back(std::move(layer));
  }
  const Tensor& layer = layers_[next_++];
  if (layer.shape() == shape && layer.dtype() == x.dtype()) return layer;
  return absl::InvalidArgumentError(absl::StrCat(
      "attention ", next_, " of the forward needs ", DTypeName(x.dtype()),
      shape.ToString(), " of the key-value cache, which has ",
      DTypeName(layer.dtype()), layer.shape().ToString(),
      " for it; let the model attend in the same order in every forward"));
}

std::size_t KvCache::bytes() const {
  std::size_t bytes = 0;
  for (const Tensor& layer : layers_) bytes += layer.bytes();
  return bytes;
}

}  // namespace troupe::nn
