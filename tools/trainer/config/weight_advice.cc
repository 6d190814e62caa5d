#include "tools/trainer/config/weight_advice.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "nn/models/models.h"

namespace troupe::tools {
namespace {

using Names = std::vector<std::string>;

// Returns the number of the block that a name lies in, behind "." or at the
// front: 11 of "transformer.h.11.ln_1.weight" for the marker "h.".
std::optional<std::int64_t> BlockOf(absl::string_view name,
                                    absl::string_view marker) {
  std::size_t at = name.rfind(marker);
  if (at == absl::string_view::npos || (at > 0 && name[at - 1] != '.')) {
    return std::nullopt;
  }
  absl::string_view digits = name.substr(at + marker.size());
  std::size_t count = 0;
  while (count < digits.size() && absl::ascii_isdigit(digits[count])) ++count;
  std::int64_t number = 0;
  if (!absl::SimpleAtoi(digits.substr(0, count), &number)) return std::nullopt;
  return number;
}

// Returns how many blocks a file has, by the names that only one side has and
// that end so; nothing if neither side has blocks of its own.
std::optional<std::int64_t> BlocksOfFile(
    const nn::WeightDifferences& differences,
    const std::vector<absl::string_view>& markers, absl::string_view end = "") {
  std::optional<std::int64_t> first_missing, last_unexpected;
  for (absl::string_view marker : markers) {
    for (const std::string& name : differences.missing) {
      if (!absl::EndsWith(name, end)) continue;
      const auto block = BlockOf(name, marker);
      if (block.has_value() && *block < first_missing.value_or(*block + 1)) {
        first_missing = block;
      }
    }
    for (const std::string& name : differences.unexpected) {
      if (!absl::EndsWith(name, end)) continue;
      const auto block = BlockOf(name, marker);
      if (block.has_value() && *block > last_unexpected.value_or(-1)) {
        last_unexpected = block;
      }
    }
  }
  if (last_unexpected.has_value()) return *last_unexpected + 1;
  return first_missing;
}

bool AnyEndsWith(const Names& names, absl::string_view end) {
  return std::any_of(names.begin(), names.end(), [end](const std::string& n) {
    return absl::EndsWith(n, end);
  });
}

class Adviser {
 public:
  Adviser(const TrainerConfig& config, const data::SampleSpec& sample,
          const nn::WeightDifferences& differences)
      : config_(config), sample_(sample), differences_(differences) {}

  std::string Advice() {
    const std::string& kind = config_.model.kind;
    if (!config_.model.layers.empty()) return "";
    if (absl::StartsWith(kind, "gpt")) {
      OfGpt2();
    } else if (absl::StartsWith(kind, "vit")) {
      OfVit();
    } else if (absl::StartsWith(kind, "resnet")) {
      OfResNet();
    }
    OfHead();
    // A file of another network has nothing in common with the model.
    if (settings_.empty() && sentences_.empty()) OfOtherKind();
    return Joined();
  }

 private:
  // Notes a key and its value, with a reason in brackets if it is not plain.
  void Set(absl::string_view key, absl::string_view value,
           absl::string_view why = "") {
    settings_.push_back(absl::StrCat(key, " = ", value));
    if (!why.empty()) absl::StrAppend(&settings_.back(), " (", why, ")");
  }

  // Returns the tensor that has another shape of this rank in the file.
  const nn::WeightMismatch* Mismatch(absl::string_view name, int rank) const {
    for (const nn::WeightMismatch& mismatch : differences_.mismatches) {
      if (mismatch.name == name && mismatch.file.rank() == rank &&
          mismatch.model.rank() == rank) {
        return &mismatch;
      }
    }
    return nullptr;
  }

  void OfGpt2() {
    const nn::WeightMismatch* const tokens = Mismatch("wte.weight", 2);
    if (tokens != nullptr && tokens->file[0] != tokens->model[0]) {
      OfVocabulary(tokens->file[0], tokens->model[0]);
    }
    if (tokens != nullptr && tokens->file[1] != tokens->model[1]) {
      OfWidth(tokens->file[1]);
    }
    const nn::WeightMismatch* const positions = Mismatch("wpe.weight", 2);
    if (positions != nullptr && positions->file[0] != positions->model[0]) {
      const std::int64_t context = positions->file[0];
      const bool is_long = context >= sample_.input_shape[0];
      Set(is_long ? "model.context" : "data.context", absl::StrCat(context));
    }
    OfDepth({"h."});
    if (config_.model.tie_head &&
        AnyEndsWith(differences_.unexpected, "lm_head.weight")) {
      Set("model.tie_head", "false", "its head has weights of its own");
    }
  }

  void OfVocabulary(std::int64_t in_file, std::int64_t in_model) {
    if (config_.data.kind == "tokens" && in_file < in_model) {
      Set("data.vocab_size", absl::StrCat(in_file),
          "if the data have no other tokens");
      return;
    }
    sentences_.push_back(absl::StrCat(
        "take data of its ", in_file, " tokens (data.path",
        config_.data.kind == "tokens" ? ")" : ", data.tokenizer)"));
    if (in_file > in_model) {
      absl::StrAppend(&sentences_.back(),
                      ", or set model.vocab_size = ", in_file, " if its first ",
                      in_model, " are the data's");
    }
  }

  void OfWidth(std::int64_t width) {
    Set("model.width", absl::StrCat(width));
    constexpr std::int64_t kHeadFeatures = 64;
    if (width % kHeadFeatures == 0) {
      Set("model.heads", absl::StrCat(width / kHeadFeatures),
          "if a head has 64 features");
    } else {
      sentences_.push_back("set model.heads to the number that it has");
    }
  }

  void OfDepth(const std::vector<absl::string_view>& markers) {
    const auto depth = BlocksOfFile(differences_, markers);
    if (depth.has_value() && *depth > 0) {
      Set("model.depth", absl::StrCat(*depth));
    }
  }

  void OfVit() {
    const auto preset = nn::VitPreset(config_.model.kind);
    std::int64_t patch = config_.model.patch_size > 0 ? config_.model.patch_size
                         : preset.ok()                ? preset->patch_size
                                                      : 0;
    const nn::WeightMismatch* const patches =
        Mismatch("patch_embed.proj.weight", 4);
    if (patches != nullptr && patches->file[2] != patches->model[2]) {
      patch = patches->file[2];
      Set("model.patch_size", absl::StrCat(patch));
    }
    const nn::WeightMismatch* const places = Mismatch("pos_embed", 3);
    if (places != nullptr && places->file[1] != places->model[1]) {
      const auto rows = static_cast<std::int64_t>(
          std::lround(std::sqrt(static_cast<double>(places->file[1] - 1))));
      OfImageSize(rows * patch);
    }
    const nn::WeightMismatch* const width = Mismatch("norm.weight", 1);
    if (width != nullptr) OfWidth(width->file[0]);
    OfDepth({"blocks.", "encoder.layer.", "encoder_layer_"});
  }

  void OfImageSize(std::int64_t size) {
    if (config_.data.kind == "images") {
      Set("data.image_size", absl::StrCat(size));
    } else {
      sentences_.push_back(
          absl::StrCat("take images of ", size, " x ", size, " (data.kind)"));
    }
  }

  void OfResNet() {
    const nn::WeightMismatch* const stem = Mismatch("conv1.weight", 4);
    if (stem != nullptr && stem->file[2] != stem->model[2] &&
        (stem->file[2] == 7 || stem->file[2] == 3)) {
      Set("model.stem", stem->file[2] == 7 ? "\"imagenet\"" : "\"cifar\"",
          absl::StrCat("its conv1.weight is ", stem->file[2], "x",
                       stem->file[3]));
    }
    if (stem != nullptr && stem->file[1] != stem->model[1]) {
      sentences_.push_back(absl::StrCat("take images of ", stem->file[1],
                                        " channels (data.kind)"));
    }
    // The third stage tells the depth, a third convolution the kind of block.
    constexpr absl::string_view kThird = "layer1.0.conv3.weight";
    const std::string& kind = config_.model.kind;
    const bool is_deep = kind == "resnet50" || kind == "resnet101";
    const bool differs = AnyEndsWith(differences_.missing, kThird) ||
                         AnyEndsWith(differences_.unexpected, kThird);
    const auto blocks =
        BlocksOfFile(differences_, {"layer3."}, ".conv1.weight");
    if (!differs && !blocks.has_value()) return;
    SetResNet(differs != is_deep, blocks.value_or(BlocksOf(kind)));
  }

  static std::int64_t BlocksOf(absl::string_view kind) {
    return kind == "resnet18" ? 2 : kind == "resnet101" ? 23 : 6;
  }

  void SetResNet(bool is_deep, std::int64_t blocks) {
    for (absl::string_view kind : {"resnet18", "resnet34"}) {
      if (!is_deep && blocks == BlocksOf(kind)) SetKind(kind);
    }
    for (absl::string_view kind : {"resnet50", "resnet101"}) {
      if (is_deep && blocks == BlocksOf(kind)) SetKind(kind);
    }
  }

  void SetKind(absl::string_view kind) {
    Set("model.kind", absl::StrCat("\"", kind, "\""));
  }

  // Advises on a last layer that differs in its outputs only.
  void OfHead() {
    if (!sample_.is_classification() ||
        absl::StartsWith(config_.model.kind, "gpt"))
      return;
    const nn::WeightMismatch* head = nullptr;
    for (const nn::WeightMismatch& mismatch : differences_.mismatches) {
      if (mismatch.file.rank() == 2 && mismatch.model.rank() == 2) {
        head = &mismatch;  // layers come in their order
      }
    }
    if (head == nullptr || head->model[0] == head->file[0] ||
        head->model[0] !=
            std::max(sample_.num_classes, config_.model.num_classes)) {
      return;
    }
    const std::int64_t classes = head->file[0];
    if (classes >= sample_.num_classes) {
      Set("model.num_classes", absl::StrCat(classes));
    } else {
      sentences_.push_back(absl::StrCat(
          "take data of its ", classes, " classes (data.path), or give ",
          head->name, " a new start (model.init_strict = false)"));
    }
  }

  void OfOtherKind() {
    const Names& names = differences_.unexpected;
    const std::string& kind = config_.model.kind;
    if (AnyEndsWith(names, "attn.c_attn.weight") &&
        !absl::StartsWith(kind, "gpt")) {
      SetKind("gpt2");
    } else if (AnyEndsWith(names, "layer1.0.conv1.weight") &&
               !absl::StartsWith(kind, "resnet")) {
      SetResNet(
          AnyEndsWith(names, "layer1.0.conv3.weight"),
          BlocksOfFile(differences_, {"layer3."}, ".conv1.weight").value_or(0));
    } else if (AnyEndsWith(names, "patch_embed.proj.weight") &&
               !absl::StartsWith(kind, "vit")) {
      SetKind("vit_base");
    }
  }

  std::string Joined() const {
    Names parts;
    if (!settings_.empty()) {
      const auto others =
          absl::MakeConstSpan(settings_).first(settings_.size() - 1);
      parts.push_back(absl::StrCat("set ", absl::StrJoin(others, ", "),
                                   others.empty() ? "" : " and ",
                                   settings_.back()));
    }
    parts.insert(parts.end(), sentences_.begin(), sentences_.end());
    return absl::StrJoin(parts, "; ");
  }

  const TrainerConfig& config_;
  const data::SampleSpec& sample_;
  const nn::WeightDifferences& differences_;
  Names settings_;   // "key = value"
  Names sentences_;  // advice of other kinds
};

}  // namespace

std::string WeightAdvice(const TrainerConfig& config,
                         const data::SampleSpec& sample,
                         const nn::WeightDifferences& differences) {
  return Adviser(config, sample, differences).Advice();
}

}  // namespace troupe::tools
