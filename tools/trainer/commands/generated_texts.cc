#include "tools/trainer/commands/generated_texts.h"

#include <algorithm>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/field_error.h"
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
        Text{nn::StopSequences(options.stop), "", "", 0, false, ""});
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
  End(number);
  return reads_ && status_.ok();
}

void GeneratedTexts::End(std::size_t number) {
  Text& text = texts_[number];
  Say(text, text.stop.Rest());
  text.waiting += options_.json ? Object(number) : "\n";
  text.ended = true;
  Write();
}

absl::Status GeneratedTexts::OnError(std::size_t number,
                                     const absl::Status& status) {
  const absl::Status named = base::WithMessage(
      status, absl::StrCat(options_.names[number], ": ", status.message()));
  const bool is_of_prompt = absl::IsInvalidArgument(status) ||
                            absl::IsOutOfRange(status) ||
                            absl::IsResourceExhausted(status);
  if (prompts_.size() == 1 || !is_of_prompt) return named;
  options_.note(std::string(named.message()));
  if (text_failure_.ok()) text_failure_ = named;
  texts_[number].error = std::string(status.message());
  End(number);
  return absl::OkStatus();
}

absl::Status GeneratedTexts::status() const {
  if (!status_.ok() || text_failure_.ok()) return status_;
  const auto failed =
      std::count_if(texts_.begin(), texts_.end(),
                    [](const Text& text) { return !text.error.empty(); });
  return base::WithMessage(
      text_failure_, absl::StrCat(failed, " of ", texts_.size(),
                                  " prompts ended by an error; the first: ",
                                  text_failure_.message()));
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
  const bool failed = !text.error.empty();
  Json object = {{"prompt", prompts_[number]},
                 {"text", text.said},
                 {"tokens", text.tokens},
                 {"finish_reason", failed    ? "error"
                                   : stopped ? "stop"
                                             : "length"}};
  if (failed) object["error"] = text.error;
  return absl::StrCat(object.dump(-1, ' ', /*ensure_ascii=*/false,
                                  Json::error_handler_t::replace),
                      "\n");
}

}  // namespace troupe::tools
