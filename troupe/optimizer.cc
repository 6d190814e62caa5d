#include "troupe/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "actors/chunks/update_counts.h"
#include "base/name_pattern.h"
#include "base/status_error.h"
#include "troupe/devices/device_leader.h"
#include "troupe/internal/loop_rule.h"
#include "troupe/internal/master_values.h"
#include "troupe/internal/optimizable_core.h"

namespace troupe {
namespace {

// Limit on the names that an error lists.
constexpr std::size_t kNamesShownMax = 8;

[[noreturn]] void Refuse(const std::string& message) {
  throw base::StatusError(absl::InvalidArgumentError(message));
}

void CheckPatterns(std::vector<std::string> names,
                   const std::vector<std::string>& only) {
  for (const std::string& pattern : only) {
    if (std::any_of(names.begin(), names.end(), [&](const std::string& name) {
          return base::MatchesPattern(pattern, name);
        })) {
      continue;
    }
    const bool more = names.size() > kNamesShownMax;
    names.resize(std::min(names.size(), kNamesShownMax));
    Refuse(absl::StrCat("the optimizer's `only` has \"", pattern,
                        "\", which is no parameter that the model trains (* "
                        "stands for any text); choose among ",
                        absl::StrJoin(names, ", "), more ? ", ..." : ""));
  }
}

// Returns the rate, or throws if none can be trained with.
double CheckedRate(double lr, absl::string_view what) {
  if (lr >= 0 && std::isfinite(lr)) return lr;
  Refuse(absl::StrCat(what, " is at least 0 and finite, not ", lr));
}

// Returns the rate of the model's next step.
double RateOf(const LoopRule& rule, const LoopSettings& settings,
              const OptimizableCore& core) {
  const std::int64_t step = core.step();
  return CheckedRate(rule.LearningRate(step),
                     absl::StrCat("the scheduled learning rate of step ",
                                  settings.steps_before + step));
}

}  // namespace

Optimizer::Optimizer(
    const Optimizable& model,
    const std::function<std::unique_ptr<nn::Optimizer>()>& make,
    const std::vector<std::string>& only)
    : model_(model), settings_(std::make_shared<LoopSettings>()) {
  CheckPatterns(core().TrainedNames(), only);
  settings_->only = only;
  core().Attach([&]() -> std::unique_ptr<nn::Optimizer> {
    auto rule = std::make_unique<LoopRule>(make(), settings_);
    rules_.push_back(rule.get());
    return rule;
  });
  settings_->base_lr = rules_[0]->LearningRate(/*step=*/0);
  for (const LoopRule* rule : rules_) {
    saved_.counts.emplace_back(rule->arena()->slots().size(), kAll);
  }
  // The model may outlive this object, and so may its settings and rules.
  OptimizableCore* const core = &model_.optimizable();
  core->SetUseRate([core, settings = settings_,
                    rule = rules_[0]](std::optional<double> rate) {
    settings->lr = rate.has_value() ? *rate : RateOf(*rule, *settings, *core);
    return settings->lr;
  });
  if (core->leader() != nullptr) core->leader()->MakeOptimizer(make, only);
}

void Optimizer::ZeroGrad() { core().ZeroGrad(); }

void Optimizer::Step(CallPlace place) {
  core().Step(place, /*rate=*/std::nullopt);
}

void Optimizer::FollowParameters(CallPlace place) {
  Rank& rank = model_.rank();
  const actors::CallNote::Scope call(rank.strand().call(), "FollowParameters",
                                     place);
  for (const LoopRule* rule : rules_) {
    const nn::ParameterArena& arena = *rule->arena();
    for (const nn::ArenaSlot& slot : arena.slots()) {
      base::OrThrow(FollowValues(
          rank.kernels(), arena,
          {slot.begin, slot.begin + slot.parameter->shape.numel()}));
    }
  }
}

std::int64_t Optimizer::steps() const {
  return settings_->steps_before + core().step();
}

double Optimizer::lr() const { return RateOf(*rules_[0], *settings_, core()); }

void Optimizer::set_lr(double lr) {
  settings_->set_lr = CheckedRate(lr, "a learning rate");
}

double Optimizer::base_lr() const { return settings_->base_lr; }

void Optimizer::set_base_lr(double lr) { settings_->base_lr = lr; }

void Optimizer::Schedule(std::function<double(std::int64_t t)> factor,
                         std::int64_t every) {
  if (!factor) Refuse("a schedule needs a function, not null");
  if (every < 1) {
    Refuse(absl::StrCat("a schedule's `every` is at least 1 step, not ", every,
                        "; for epochs it is DataLoader::size()"));
  }
  settings_->set_lr.reset();
  settings_->factor = [factor = std::move(factor), every](std::int64_t step) {
    return factor(step / every);
  };
}

void Optimizer::Schedule(const LrSchedule& schedule, std::int64_t every) {
  base::OrThrow(schedule.Validate());
  Schedule([schedule](std::int64_t t) { return schedule.Factor(t); }, every);
}

void Optimizer::AddTo(State& state) {
  for (std::size_t r = 0; r < rules_.size(); ++r) {
    const LoopRule& rule = *rules_[r];
    const nn::ParameterArena& arena = *rule.arena();
    for (std::size_t i = 0; i < arena.slots().size(); ++i) {
      const nn::ArenaSlot& slot = arena.slots()[i];
      const std::string& parameter = slot.parameter->name;
      if (slot.bucket == nn::kNoBucket || !rule.Trains(*slot.parameter)) {
        continue;
      }
      for (const auto& [name, values] : arena.states()) {
        state.Add(absl::StrCat(parameter, ".", name), arena.View(values, slot));
      }
      if (!rule.CountsUpdates()) continue;
      state.AddOptional(absl::StrCat(parameter, ".", actors::kUpdateCountState),
                        saved_.counts[r][i], kAll, /*beside=*/"step");
    }
  }
  state.Add("step", saved_.step).Add("draws", saved_.draws);
  state.Add("lr", saved_.lr).Add("lr_is_set", saved_.lr_is_set);
  if (rules_[0]->MaySkipSteps()) state.Add("updates", saved_.updates);
}

void Optimizer::Refresh() {
  saved_.step = steps();
  saved_.updates =
      base::OrThrow(rules_[0]->Updates(core().step(), model_.rank().kernels()));
  for (std::size_t r = 0; r < rules_.size(); ++r) {
    for (std::size_t i = 0; i < saved_.counts[r].size(); ++i) {
      const double left_out = rules_[r]->LeftOut(i);
      saved_.counts[r][i] = left_out == 0 ? kAll : saved_.updates - left_out;
    }
  }
  saved_.draws = core().draws();
  saved_.lr = lr();
  saved_.lr_is_set = settings_->set_lr.has_value();
}

void Optimizer::OnLoaded() {
  ZeroGrad();  // its gradients are of other values
  if (!rules_[0]->MaySkipSteps()) saved_.updates = saved_.step;
  if (saved_.updates < 0 || saved_.updates > saved_.step || saved_.draws < 0) {
    Refuse(absl::StrCat("the file's optimizer has done ", saved_.step,
                        " steps, ", saved_.updates,
                        " updates and the draws of ", saved_.draws,
                        " steps; a file of Save() has no such numbers"));
  }
  std::vector<std::vector<double>> left_out = saved_.counts;
  for (std::vector<double>& of_rule : left_out) {
    for (double& number : of_rule) {
      if (number != kAll && !(number >= 0 && number <= saved_.updates)) {
        Refuse(absl::StrCat("the file's optimizer has updated a parameter ",
                            number, " times in ", saved_.updates,
                            " updates; a file of Save() has no such number"));
      }
      number = number == kAll ? 0 : saved_.updates - number;
    }
  }
  core().SetDraws(saved_.draws);
  const std::int64_t engine_steps = core().step();
  settings_->steps_before = saved_.step - engine_steps;
  settings_->set_lr.reset();
  if (saved_.lr_is_set) set_lr(saved_.lr);
  for (std::size_t r = 0; r < rules_.size(); ++r) {
    base::OrThrow(rules_[r]->SetUpdates(saved_.updates, engine_steps,
                                        model_.rank().kernels()));
    rules_[r]->SetLeftOut(left_out[r]);
  }
  if (DeviceLeader* const leader = core().leader()) {
    leader->Load([saved = saved_](Optimizer& replica) {
      replica.saved_ = saved;
      replica.OnLoaded();
    });
  }
}

}  // namespace troupe
