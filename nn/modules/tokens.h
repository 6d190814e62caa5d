// The ends of a part of a model in which ranks along "tp" share the tokens of
// each sequence (nn/ops/tokens.h), for models whose table of tokens is not cut:
//
//   model->Append<TakeTokens>();        // [N, T, D] -> [N, T / tp, D]
//   model->Append<RMSNorm>(512).set_parallel(true);
//   // Blocks of column and row layers, and
//   model->Append<GatherTokens>();      // [N, T / tp, D] -> [N, T, D]
//   model->set_shares_tokens();
//
// Layers before and behind them are whole on each rank, with whole gradients.
// Neither changes x unless ranks share tokens (nn/modules/localise.h). tp must
// divide T.

#ifndef NN_MODULES_TOKENS_H_
#define NN_MODULES_TOKENS_H_

#include "nn/modules/module.h"
#include "nn/ops/tokens.h"

namespace troupe::nn {

class TakeTokens : public Module {
 public:
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return tokens_.size > 1 ? ops::TakeTokens(ctx, x, tokens_) : x;
  }
  absl::Status Localise(absl::Span<const AxisPlace> places) override {
    tokens_ = TokensAlong(places, "tp");
    return absl::OkStatus();
  }

 private:
  AxisPlace tokens_;
};

class GatherTokens : public Module {
 public:
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return tokens_.size > 1 ? ops::GatherTokens(ctx, x, tokens_) : x;
  }
  absl::Status Localise(absl::Span<const AxisPlace> places) override {
    tokens_ = TokensAlong(places, "tp");
    return absl::OkStatus();
  }

 private:
  AxisPlace tokens_;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_TOKENS_H_
