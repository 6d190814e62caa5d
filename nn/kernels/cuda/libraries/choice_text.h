// Prints algorithms of libraries as single words, the choices of
// choice_cache.h, and parses them.
//
//   const std::string lt = LtAlgorithmText({1, 2, 3, 4, 5, 6, 7, 8});
//   LtAlgorithm algorithm;
//   if (!ParseLtAlgorithm(lt, algorithm)) Refuse(lt);
//
//   EngineChoice engine;
//   engine.engine = 12, engine.knobs = {{2, 64}, {9, 1}};
//   engine.ToText();                     // "plain:12:2=64:9=1"
//
//   AttentionChoice attention;
//   attention.samples = 8, attention.engine = engine;
//   attention.ToText();                  // "cudnn:8:plain:12:2=64:9=1"
//
// A choice that a library does not know is an error that ends in kKeepsChoices.
//
// Parsing accepts only text in the form that printing gives. Uses no CUDA.

#ifndef NN_KERNELS_CUDA_LIBRARIES_CHOICE_TEXT_H_
#define NN_KERNELS_CUDA_LIBRARIES_CHOICE_TEXT_H_

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace troupe::nn::cuda {

// Advice at the end of the error of a library that refuses a choice on record.
inline constexpr char kKeepsChoices[] =
    "run with the version of the library that the choice is of to keep it";

// The words of a cublasLtMatmulAlgo_t. The same version of the library accepts
// them again unchanged.
using LtAlgorithm = std::array<std::uint64_t, 8>;

// Returns "lt." and 8 times 16 hexadecimal digits.
std::string LtAlgorithmText(const LtAlgorithm& algorithm);
bool ParseLtAlgorithm(absl::string_view text, LtAlgorithm& algorithm);

// An engine of cuDNN for a graph, and the values of its knobs.
struct EngineChoice {
  static constexpr std::size_t kKnobsMax = 64;

  bool fused = false;  // the graph also adds the bias
  std::int64_t engine = 0;
  // Type and value of each knob, both as cuDNN numbers them; ordered by type.
  std::vector<std::pair<std::int64_t, std::int64_t>> knobs;

  std::string ToText() const;
  static bool Parse(absl::string_view text, EngineChoice& choice);
};

// An engine of cuDNN for the attention of `samples` samples at once.
struct AttentionChoice {
  std::int64_t samples = 1;
  EngineChoice engine;

  std::string ToText() const;
  static bool Parse(absl::string_view text, AttentionChoice& choice);
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_CHOICE_TEXT_H_
