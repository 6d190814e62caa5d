// Weights by which samples are drawn with replacement, as by PyTorch's
// WeightedRandomSampler(weights, num_samples=len(weights)).
//
//   TROUPE_ASSIGN_OR_RETURN(SampleWeightsPtr weights,
//                           SampleWeights::Create({1, 1, 8, 0}));
//   options.weights = weights;                      // SamplerOptions
//   TROUPE_ASSIGN_OR_RETURN(options.weights, ClassBalancedWeights(*train));
//
// Sample i is drawn with probability weights[i] / sum, independently of the
// draws before it; a sample of weight 0 never is. An epoch has as many draws as
// there are samples, from Philox with key (seed, Purpose::kShuffle) and counter
// (epoch), by the inverse of the cumulative sums. So every rank has the same
// order without communication. PyTorch draws the same distribution from another
// generator.
//
// Immutable, shared by any number of threads. Cost: 8 bytes a sample, and one
// binary search a draw.

#ifndef DATA_SAMPLE_WEIGHTS_H_
#define DATA_SAMPLE_WEIGHTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/file_system.h"
#include "data/dataset.h"

namespace troupe::data {

class SampleWeights;
using SampleWeightsPtr = std::shared_ptr<const SampleWeights>;

class SampleWeights {
 public:
  // kInvalidArgument: there are none, one is negative or not finite, or all are
  //                   0; names its position.
  static absl::StatusOr<SampleWeightsPtr> Create(
      const std::vector<double>& weights);

  std::int64_t size() const { return static_cast<std::int64_t>(sums_.size()); }
  // Returns the sample that a number in [0, 1) draws.
  std::int64_t SampleAt(double uniform) const;
  // Writes the size() samples of an epoch to `order`. `epoch` is in [0, 2^32).
  void Draw(std::uint64_t seed, std::int64_t epoch,
            std::vector<std::int64_t>& order) const;
  // Hash of the weights, which checkpoints keep.
  const std::string& hash() const { return hash_; }

 private:
  SampleWeights(std::vector<double> sums, std::string hash)
      : sums_(std::move(sums)), hash_(std::move(hash)) {}

  const std::vector<double> sums_;  // sum of the weights up to each, inclusive
  const std::string hash_;
};

// Limit on the size of a file of weights.
inline constexpr std::int64_t kWeightsBytesMax = std::int64_t{1} << 30;

// Reads the weights of `samples` samples from a text file: a number a line.
//   kInvalidArgument: a line is no number, the file has not as many lines as
//                     there are samples. Names file and line.
absl::StatusOr<std::vector<double>> ReadSampleWeights(base::FileSystem& files,
                                                      const std::string& path,
                                                      std::int64_t samples);

// Returns the weights by which every class is drawn equally often: 1 over the
// number of samples of the class. Classes without samples are passed over.
//   kInvalidArgument: the samples have no classes.
//   other:            errors of Dataset::Labels().
absl::StatusOr<SampleWeightsPtr> ClassBalancedWeights(const Dataset& dataset);

}  // namespace troupe::data

#endif  // DATA_SAMPLE_WEIGHTS_H_
