#include "troupe/engine.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/files/file_system.h"
#include "base/status_error.h"
#include "troupe/internal/replace_file.h"
#include "troupe/state.h"

namespace troupe {
namespace {

// Limit on the file with the latest tag.
constexpr std::int64_t kTagBytesMax = 4096;

const EngineOptions& Checked(const EngineOptions& options) {
  const auto refuse = [](const std::string& what) {
    throw base::StatusError(absl::InvalidArgumentError(what));
  };
  if (options.gradient_accumulation_steps < 1) {
    refuse(absl::StrCat("EngineOptions.gradient_accumulation_steps is ",
                        options.gradient_accumulation_steps,
                        "; give the number of micro-batches of an update, at "
                        "least 1"));
  }
  if (!(options.gradient_clipping >= 0)) {
    refuse(absl::StrCat("EngineOptions.gradient_clipping is ",
                        options.gradient_clipping,
                        "; give a norm above 0, or 0 for no limit"));
  }
  if (options.ddp.exact_mean && options.gradient_accumulation_steps > 1) {
    refuse(
        "EngineOptions.ddp.exact_mean needs gradient_accumulation_steps 1: "
        "the mean over several micro-batches is one of means; leave one of "
        "them out");
  }
  return options;
}

std::unique_ptr<Optimizer> MakeOptimizer(const DDP& ddp, Engine::Rule rule,
                                         double clipping) {
  const auto make = [&](auto& options) -> std::unique_ptr<Optimizer> {
    using Options = std::decay_t<decltype(options)>;
    if (clipping > 0) options.common.clip_grad_norm = clipping;
    if constexpr (std::is_same_v<Options, nn::SgdOptions>) {
      return std::make_unique<Sgd>(ddp, options);
    } else if constexpr (std::is_same_v<Options, nn::AdamOptions>) {
      return std::make_unique<Adam>(ddp, options);
    } else if constexpr (std::is_same_v<Options, nn::LambOptions>) {
      return std::make_unique<Lamb>(ddp, options);
    } else {
      return std::make_unique<Lars>(ddp, options);
    }
  };
  return std::visit(make, rule);
}

std::string PathOf(const std::string& folder, const std::string& tag) {
  return absl::StrCat(folder, "/", tag, ".safetensors");
}

std::string LatestOf(const std::string& folder) {
  return absl::StrCat(folder, "/latest");
}

// Throws if the tag is no name of a file.
void CheckTag(const std::string& tag) {
  if (tag.find_first_of("/\n") == std::string::npos) return;
  throw base::StatusError(absl::InvalidArgumentError(
      absl::StrCat("the tag \"", tag,
                   "\" of a checkpoint is part of a file's name; leave out "
                   "slashes and ends of lines")));
}

}  // namespace

Engine::Engine(const Trainable& model, const Rule& rule,
               const EngineOptions& options)
    : options_(Checked(options)),
      ddp_(model, options.ddp),
      optimizer_(MakeOptimizer(ddp_, rule, options.gradient_clipping)) {}

void Engine::Backward(const Var& loss) {
  std::optional<DDP::Unsynced> unsynced;
  if (!IsGradientAccumulationBoundary()) unsynced.emplace(ddp_.core());
  const int parts = options_.gradient_accumulation_steps;
  (parts == 1 ? loss : loss / parts).Backward();
  has_gradients_ = true;
}

void Engine::Step(CallPlace place) {
  if (!std::exchange(has_gradients_, false)) {
    throw base::StatusError(absl::FailedPreconditionError(
        "Step() of an Engine without a Backward() since the last one; call "
        "Backward(loss) first"));
  }
  if (IsGradientAccumulationBoundary()) {
    optimizer_->Step(place);
    optimizer_->ZeroGrad();
  }
  ++micro_steps_;
}

State Engine::StateOf(ClientState& client_state) {
  State state;
  state.Add(ddp_).Add(*optimizer_).Add("engine.micro_steps", micro_steps_);
  for (auto& [name, number] : client_state) {
    state.Add(absl::StrCat("client.", name), number);
  }
  return state;
}

void Engine::SaveCheckpoint(const std::string& folder, std::string tag,
                            const ClientState& client_state) {
  if (tag.empty()) tag = absl::StrCat("global_step", global_steps());
  CheckTag(tag);
  if (micro_steps_ % options_.gradient_accumulation_steps != 0) {
    throw base::StatusError(absl::FailedPreconditionError(absl::StrCat(
        "a checkpoint after ", micro_steps_, " micro-steps of ",
        options_.gradient_accumulation_steps,
        " an update would lose the gradients of this update; save after a "
        "Step() that updates")));
  }
  Group& replicas = ddp_.rank().Axis("dp");
  if (replicas.rank() == 0) {
    base::PosixFileSystem files;
    base::OrThrow(files.CreateFolder(folder));
    ClientState saved = client_state;
    StateOptions options;
    options.kernels = &ddp_.rank().kernels();
    Save(StateOf(saved), PathOf(folder, tag), options);
    base::OrThrow(
        ReplaceFile(files, LatestOf(folder), [&](const std::string& to) {
          return base::WriteWholeFile(files, to, absl::StrCat(tag, "\n"));
        }));
  }
  replicas.Barrier();
}

std::string Engine::LoadCheckpoint(const std::string& folder, std::string tag,
                                   ClientState* client_state) {
  base::PosixFileSystem files;
  if (tag.empty()) {
    if (!files.Exists(LatestOf(folder))) {
      throw base::StatusError(absl::NotFoundError(
          absl::StrCat(folder,
                       " has no file \"latest\"; give the folder of "
                       "SaveCheckpoint(), or a tag")));
    }
    tag = std::string(absl::StripAsciiWhitespace(
        base::OrThrow(files.ReadToEnd(LatestOf(folder), kTagBytesMax))));
  }
  CheckTag(tag);
  ClientState none;
  StateOptions options;
  options.kernels = &ddp_.rank().kernels();
  Load(StateOf(client_state == nullptr ? none : *client_state),
       PathOf(folder, tag), options);
  has_gradients_ = false;
  return tag;
}

}  // namespace troupe
