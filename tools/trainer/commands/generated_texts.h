// Writes generated texts in the order of their prompts, although several grow
// at a time: the first that has not ended as it comes, the others when it is
// their turn.
//
//   GeneratedTexts texts(prompts, tokenizer, options, write);
//   TROUPE_RETURN_IF_ERROR(
//       nn::GenerateTexts(logits, memory, tokens, sampling, texts));
//   TROUPE_RETURN_IF_ERROR(texts.status());
//
// A text is written as the prompt, then a piece for each token, and an empty
// line between texts; or as JSON: an object in a line for each text, at its
// end. An error of one of several texts is a note, and ends that text alone.

#ifndef TOOLS_TRAINER_COMMANDS_GENERATED_TEXTS_H_
#define TOOLS_TRAINER_COMMANDS_GENERATED_TEXTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "data/text/tokenizer.h"
#include "nn/generate/generate.h"
#include "nn/generate/stop_sequences.h"
#include "tools/trainer/run/spec_builder.h"

namespace troupe::tools {

class GeneratedTexts : public nn::TextListener {
 public:
  struct Options {
    bool json = false;
    std::vector<std::string> stop;
    int tokens = 0;                  // limit on the tokens of a text
    std::vector<std::string> names;  // prompts' names for messages
    NoteFn note;
  };

  // Writes the first prompt. References outlive the texts.
  GeneratedTexts(const std::vector<std::string>& prompts,
                 const data::Tokenizer& tokenizer, const Options& options,
                 const std::function<bool(absl::string_view)>& write);

  bool OnToken(std::size_t text, std::int32_t token) override;
  bool OnEnd(std::size_t text) override;
  // Goes on after what may be the prompt's fault.
  absl::Status OnError(std::size_t text, const absl::Status& status) override;

  // kOutOfRange: the model has generated what is no token.
  // other: the first error of a text, and how many texts have one.
  absl::Status status() const;

 private:
  struct Text {
    nn::StopSequences stop;
    std::string said;     // only if `json` is set
    std::string waiting;  // to be written
    int tokens = 0;
    bool ended = false;
    std::string error;
  };

  void Say(Text& text, const std::string& piece);
  void End(std::size_t text);
  // Writes what waits of the texts whose turn it is.
  void Write();
  std::string Object(std::size_t text) const;

  const std::vector<std::string>& prompts_;
  const data::Tokenizer& tokenizer_;
  const Options options_;
  const std::function<bool(absl::string_view)>& write_;
  std::vector<Text> texts_;
  std::size_t turn_ = 0;
  bool reads_ = true;
  absl::Status status_;        // error of a token that is none
  absl::Status text_failure_;  // error of the first text that has one
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_GENERATED_TEXTS_H_
