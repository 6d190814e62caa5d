#include <cmath>
#include <vector>

#include "nn/kernels/reference/reference_ops.h"
#include "nn/random/philox.h"

// Letters: the same as in nn/kernels/attention.h.

namespace troupe::nn::reference {
namespace {

double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Rows of D elements each, as doubles.
using Rows = std::vector<std::vector<double>>;

// Loads head `h` of sample `n` at all positions.
template <typename T>
Rows LoadHead(const AttentionHeads& heads, std::int64_t n, std::int64_t h,
              std::int64_t D) {
  const T* from = heads.tensor->data<T>() + heads.Sample(n) + h * D;
  Rows rows(heads.tensor->dim(1), std::vector<double>(D));
  for (std::size_t t = 0; t < rows.size(); ++t) {
    for (std::int64_t d = 0; d < D; ++d) {
      rows[t][d] = Load(from[t * heads.row + d]);
    }
  }
  return rows;
}

template <typename T>
void StoreHead(const Rows& rows, const AttentionHeads& heads, std::int64_t n,
               std::int64_t h) {
  const std::int64_t D = rows.empty() ? 0 : rows[0].size();
  T* to = heads.tensor->data<T>() + heads.Sample(n) + h * D;
  for (std::size_t t = 0; t < rows.size(); ++t) {
    for (std::int64_t d = 0; d < D; ++d) {
      to[t * heads.row + d] = Store<T>(rows[t][d]);
    }
  }
}

struct Probabilities {
  std::vector<double> of_keys;  // only keys that the query sees
  double log_sum;
};

Probabilities SoftmaxOfScores(const std::vector<double>& query,
                              const Rows& keys, std::int64_t seen,
                              double scale) {
  Probabilities p{std::vector<double>(seen), 0};
  double largest = -INFINITY, sum = 0;
  for (std::int64_t s = 0; s < seen; ++s) {
    p.of_keys[s] = scale * Dot(query, keys[s]);
    largest = std::fmax(largest, p.of_keys[s]);
  }
  for (double& score : p.of_keys) sum += score = std::exp(score - largest);
  for (double& score : p.of_keys) score /= sum;
  p.log_sum = largest + std::log(sum);
  return p;
}

// Returns the factors that dropout gives the probabilities of the first `seen`
// keys.
std::vector<double> DropFactors(const AttentionRule& rule,
                                const AttentionSizes& size, std::int64_t n,
                                std::int64_t h, std::int64_t t,
                                std::int64_t seen) {
  std::vector<double> factors(seen, 1.0);
  if (!rule.dropout) return factors;
  const SampleDraws draws = DrawsOf(*rule.dropout);
  std::vector<std::uint32_t> words(seen);
  FillBits32(draws.key, draws.At(n),
             static_cast<std::uint32_t>(FirstBlock(rule, size, h, t)),
             absl::MakeSpan(words));
  for (std::int64_t s = 0; s < seen; ++s) {
    factors[s] = words[s] >= rule.dropout->drop_below ? rule.dropout->scale : 0;
  }
  return factors;
}

void AddRow(double factor, const std::vector<double>& from,
            std::vector<double>& to) {
  for (std::size_t d = 0; d < from.size(); ++d) to[d] += factor * from[d];
}

struct AttentionForward {
  template <typename T>
  static absl::Status Run(const AttentionRule& rule, In q, In k, In v,
                          Tensor& y, Tensor& lse_NHT) {
    const AttentionSizes size = SizesOfAttention(q, k, v, y);
    const AttentionPlaces at = PlacesOfAttention(size, q, k, v);
    const AttentionHeads out = {&y, 0, size.Hq * size.D};
    float* lse = lse_NHT.data<float>();
    for (std::int64_t n = 0; n < size.N; ++n) {
      for (std::int64_t h = 0; h < size.Hq; ++h) {
        const std::int64_t shared = h / size.group();
        const Rows queries = LoadHead<T>(at.q, n, h, size.D);
        const Rows keys = LoadHead<T>(at.k, n, shared, size.D);
        const Rows values = LoadHead<T>(at.v, n, shared, size.D);
        Rows sums(size.T, std::vector<double>(size.D, 0.0));
        for (std::int64_t t = 0; t < size.T; ++t) {
          const Probabilities p = SoftmaxOfScores(
              queries[t], keys, rule.KeysSeen(t, size.S), rule.scale);
          const std::vector<double> factors =
              DropFactors(rule, size, n, h, t, p.of_keys.size());
          for (std::size_t s = 0; s < p.of_keys.size(); ++s) {
            AddRow(p.of_keys[s] * factors[s], values[s], sums[t]);
          }
          *lse++ = static_cast<float>(p.log_sum);
        }
        StoreHead<T>(sums, out, n, h);
      }
    }
    return absl::OkStatus();
  }
};

// Data of one head of keys in backward.
struct KeyHead {
  Rows keys, values, dkeys, dvalues;
};

// Adds the gradients from head h of the queries of sample n. The probabilities
// come from the scores in f64, not from `lse`, which is rounded.
void AddHeadGradients(const AttentionRule& rule, const AttentionSizes& size,
                      std::int64_t n, std::int64_t h, const Rows& queries,
                      const Rows& dy, KeyHead& head, Rows& dqueries) {
  for (std::size_t t = 0; t < queries.size(); ++t) {
    const std::int64_t seen = rule.KeysSeen(t, size.S);
    const Probabilities p =
        SoftmaxOfScores(queries[t], head.keys, seen, rule.scale);
    const std::vector<double> factors = DropFactors(rule, size, n, h, t, seen);
    std::vector<double> dp(seen);
    for (std::int64_t s = 0; s < seen; ++s) {
      dp[s] = Dot(dy[t], head.values[s]) * factors[s];
      AddRow(p.of_keys[s] * factors[s], dy[t], head.dvalues[s]);
    }
    const double mean = Dot(p.of_keys, dp);
    for (std::int64_t s = 0; s < seen; ++s) {
      const double dscore = rule.scale * p.of_keys[s] * (dp[s] - mean);
      AddRow(dscore, head.keys[s], dqueries[t]);
      AddRow(dscore, queries[t], head.dkeys[s]);
    }
  }
}

struct AttentionBackward {
  template <typename T>
  static absl::Status Run(const AttentionRule& rule, In q, In k, In v, In y,
                          In /*lse*/, In dy, Tensor& dq, Tensor& dk,
                          Tensor& dv) {
    const AttentionSizes size = SizesOfAttention(q, k, v, y);
    const AttentionPlaces at = PlacesOfAttention(size, q, k, v);
    const AttentionPlaces to = PlacesOfAttention(size, dq, dk, dv);
    const AttentionHeads out = {&dy, 0, size.Hq * size.D};
    const Rows no_keys(size.S, std::vector<double>(size.D, 0.0));
    const Rows no_queries(size.T, std::vector<double>(size.D, 0.0));
    for (std::int64_t n = 0; n < size.N; ++n) {
      for (std::int64_t shared = 0; shared < size.Hkv; ++shared) {
        KeyHead head = {LoadHead<T>(at.k, n, shared, size.D),
                        LoadHead<T>(at.v, n, shared, size.D), no_keys, no_keys};
        for (std::int64_t h = shared * size.group();
             h < (shared + 1) * size.group(); ++h) {
          Rows dqueries = no_queries;
          AddHeadGradients(rule, size, n, h, LoadHead<T>(at.q, n, h, size.D),
                           LoadHead<T>(out, n, h, size.D), head, dqueries);
          StoreHead<T>(dqueries, to.q, n, h);
        }
        StoreHead<T>(head.dkeys, to.k, n, shared);
        StoreHead<T>(head.dvalues, to.v, n, shared);
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

template <>
void BindFamily(AttentionKernels& ops) {
  BindFloating<AttentionForward>(ops.AttentionForward);
  BindFloating<AttentionBackward>(ops.AttentionBackward);
}

}  // namespace troupe::nn::reference
