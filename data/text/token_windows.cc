#include "data/text/token_windows.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/random/philox.h"

namespace troupe::data {
namespace {

class TokenWindows : public Dataset {
 public:
  TokenWindows(std::int64_t count, TokenSourcePtr tokens, const Range& range,
               const WindowOptions& options)
      : Dataset(count, TokenWindowSpec(options.context, tokens->vocab_size())),
        tokens_(std::move(tokens)),
        range_(range),
        options_(options),
        random_(options.seed, nn::Purpose::kData) {}

 private:
  absl::Status Gather(absl::Span<const std::int64_t> indices,
                      std::int64_t epoch, const nn::Tensor& inputs,
                      const nn::Tensor& targets) const override {
    const std::int64_t context = options_.context;
    std::int64_t* x = inputs.data<std::int64_t>();
    std::int64_t* y = targets.data<std::int64_t>();
    std::vector<std::int64_t> window(context + 1);
    for (const std::int64_t index : indices) {
      const std::int64_t begin = Begin(index, epoch);
      // Number of tokens that the window has, with the one after it.
      const std::int64_t count = std::min(context + 1, range_.end - begin);
      TROUPE_RETURN_IF_ERROR(tokens_->Read(
          begin, absl::MakeSpan(window.data(), std::size_t(count))));
      std::copy_n(window.begin(), count - 1, x);
      std::copy_n(window.begin() + 1, count - 1, y);
      std::fill(x + count - 1, x + context, 0);
      std::fill(y + count - 1, y + context, options_.padding_target);
      x += context;
      y += context;
    }
    return absl::OkStatus();
  }

  std::int64_t Begin(std::int64_t index, std::int64_t epoch) const {
    if (options_.order == WindowOrder::kSequential) {
      return range_.begin + index * options_.context;
    }
    nn::RandomPosition position;
    position.step = static_cast<std::uint32_t>(epoch);
    position.position = static_cast<std::uint32_t>(index);
    position.path = nn::HashName("data.token_windows");
    nn::RandomStream draws(random_, position);
    const std::int64_t begins = range_.size() - options_.context;
    return range_.begin + static_cast<std::int64_t>(
                              draws.Below(static_cast<std::uint64_t>(begins)));
  }

  const TokenSourcePtr tokens_;
  const Range range_;
  const WindowOptions options_;
  const nn::RandomKey random_;
};

}  // namespace

SampleSpec TokenWindowSpec(std::int64_t context, std::int64_t vocab_size) {
  SampleSpec spec;
  spec.input_shape = {context};
  spec.input_dtype = nn::DType::kI64;
  spec.target_shape = {context};
  spec.num_classes = vocab_size;
  return spec;
}

absl::StatusOr<DatasetPtr> MakeTokenWindows(TokenSourcePtr tokens,
                                            const Range& range,
                                            const WindowOptions& options) {
  TROUPE_CHECK(tokens != nullptr, "windows are of tokens");
  if (options.context < 1 || options.context > kContextMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a window of ", options.context,
                     " tokens is not possible; use 1 to ", kContextMax));
  }
  if (range.begin < 0 || range.end > tokens->size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokens [", range.begin, ", ", range.end,
                     ") are asked for, but there are only ", tokens->size(),
                     "; ask for fewer"));
  }
  const bool pads =
      options.order == WindowOrder::kSequential && options.pad_last;
  const std::int64_t needed = pads ? 2 : options.context + 1;
  if (range.size() < needed) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a window of ", options.context, " tokens and their targets needs ",
        needed, " tokens, there are ", range.size(),
        "; give more, or make windows smaller"));
  }
  // Every token except the first is a target.
  const std::int64_t targets = range.size() - 1;
  const std::int64_t count =
      (targets + (pads ? options.context - 1 : 0)) / options.context;
  return DatasetPtr(
      std::make_shared<TokenWindows>(count, std::move(tokens), range, options));
}

}  // namespace troupe::data
