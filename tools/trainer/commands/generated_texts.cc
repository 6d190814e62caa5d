#include "tools/trainer/commands/generated_texts.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace troupe::tools {

GeneratedTexts::GeneratedTexts(
    const std::vector<std::string>& prompts, const data::Tokenizer& tokenizer,
    const Options& options, const std::function<bool(absl::string_view)>& write)
    : prompts_(prompts),
      tokenizer_(tokenizer),
      options_(options),
      write_(write) {
  for (const std::string& prompt : prompts) {
    Text& text = texts_.emplace_back(
        Text{nn::StopSequences(options.stop), "", "", 0, false});
    if (options.json) continue;
    text.waiting = absl::StrCat(texts_.size() > 1 ? "\n" : "", prompt);
  }
  Write();
}

bool GeneratedTexts::OnToken(std::size_t number, std::int32_t token) {
  Text& text = texts_[number];
  const absl::StatusOr<std::string> piece = tokenizer_.Decode({token});
  if (!piece.ok()) {
    status_ = piece.status();
    return false;
  }
  ++text.tokens;
  Say(text, text.stop.Add(*piece));
  Write();
  return reads_ && !text.stop.found();
}

bool GeneratedTexts::OnEnd(std::size_t number) {
  Text& text = texts_[number];
  Say(text, text.stop.Rest());
  text.waiting += options_.json ? Object(number) : "\n";
  text.ended = true;
  Write();
  return reads_ && status_.ok();
}

void GeneratedTexts::Say(Text& text, const std::string& piece) {
  (options_.json ? text.said : text.waiting) += piece;
}

void GeneratedTexts::Write() {
  while (turn_ < texts_.size()) {
    Text& text = texts_[turn_];
    if (!text.waiting.empty() && reads_) reads_ = write_(text.waiting);
    text.waiting.clear();
    if (!text.ended) return;
    ++turn_;
  }
}

std::string GeneratedTexts::Object(std::size_t number) const {
  using Json = nlohmann::ordered_json;
  const Text& text = texts_[number];
  // A text that is shorter has ended by a stop sequence or the end token.
  const bool stopped = text.stop.found() || text.tokens < options_.tokens;
  const Json object = {{"prompt", prompts_[number]},
                       {"text", text.said},
                       {"tokens", text.tokens},
                       {"finish_reason", stopped ? "stop" : "length"}};
  return absl::StrCat(object.dump(-1, ' ', /*ensure_ascii=*/false,
                                  Json::error_handler_t::replace),
                      "\n");
}

}  // namespace troupe::tools
