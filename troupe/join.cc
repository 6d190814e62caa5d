#include "troupe/join.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_error.h"
#include "nn/autograd/create.h"
#include "nn/autograd/parameter.h"
#include "nn/autograd/tape.h"
#include "nn/autograd/var_math.h"
#include "nn/ops/cast.h"
#include "troupe/internal/gather_numbers.h"
#include "troupe/internal/join_notice.h"
#include "troupe/internal/model_core.h"

namespace troupe {
namespace {

absl::Status Differ(const std::string& first, const std::string& second) {
  return absl::FailedPreconditionError(
      absl::StrCat(first, ", ", second,
                   "; under Join() all ranks that have not ended must call "
                   "forward, Backward() and Step() of the model, or of the "
                   "models, in the same order"));
}

// Makes parameters of a module that its peers do not train at present constants
// during its lifetime.
class Frozen {
 public:
  Frozen(nn::Module& module, bool frozen) {
    if (!frozen) return;
    for (nn::Parameter* parameter : module.Parameters()) {
      if (!std::exchange(parameter->requires_grad, false)) continue;
      trained_.push_back(parameter);
    }
  }
  ~Frozen() {
    for (nn::Parameter* parameter : trained_) parameter->requires_grad = true;
  }
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;

 private:
  std::vector<nn::Parameter*> trained_;
};

// Returns the model's name among several: its number, from 1, and a parameter.
std::string NameOf(std::size_t i, const Trainable& model) {
  const std::vector<nn::Parameter*> parameters = model.Parameters();
  return absl::StrCat("model ", i + 1,
                      parameters.empty()
                          ? ""
                          : absl::StrCat(" (", parameters[0]->name, ", ...)"));
}

}  // namespace

class JoinGuard::Notices : private CallObserver {
 public:
  Notices(const std::vector<Trainable>& models, const JoinOptions& options,
          CallPlace place);
  ~Notices() override;

  // Answers the peers until all have ended.
  void Shadow();

 private:
  // CallObserver:
  absl::Status OnForward(ModelCore& model, const Tensor& x) override;
  void AfterForward(ModelCore& model, const Tensor& y) override;
  absl::Status OnBackward(absl::Span<ModelCore* const> models,
                          const Tensor& root) override;

  // Exchanges this rank's notice, whose `models` are set here but for
  // `reached`, for those of all.
  absl::Status Exchange(JoinNotice own);
  // Sets the forwards that a backward from `root` goes through.
  absl::Status SetReached(const Tensor& root, JoinNotice* notice) const;
  // Sets who trains, after an exchange. Returns an error if the peers' calls
  // differ, or if a rank may not end early.
  absl::Status Follow();
  // Makes the calls that `peer` has made since its last notice.
  void CatchUp(const JoinNotice& peer);
  // The same at the end, where the peers that were the last to train may have
  // made a step behind their last notice.
  void CatchUpWithLast();
  void ShadowForward(const JoinNotice& peer);
  void ShadowBackward(const JoinNotice& peer);
  // Returns the error of a shadow's call, with the guard's place.
  absl::Status Error(const absl::Status& status) const;
  int NumberOf(std::size_t i) const { return group_.ranks()[i]; }
  int IndexOf(const ModelCore& model) const {
    return static_cast<int>(std::find(cores_.begin(), cores_.end(), &model) -
                            cores_.begin());
  }

  const std::vector<Trainable> models_;
  std::vector<ModelCore*> cores_;  // the models' cores
  std::vector<std::string> names_;
  Rank& rank_;
  Group& group_;
  const JoinOptions options_;
  const CallPlace place_;
  std::vector<std::int64_t> steps_before_;  // each model's steps
  std::vector<JoinNotice> notices_;
  bool shadows_ = false;
  // The outputs of each model's forwards since the last backward.
  std::vector<std::vector<nn::TapeRef>> forwards_;
  // The same of a shadow, as a sum of each; undefined: without gradients.
  std::vector<std::vector<Var>> outputs_;
};

JoinGuard::Notices::Notices(const std::vector<Trainable>& models,
                            const JoinOptions& options, CallPlace place)
    : models_(models),
      rank_(models[0].rank()),
      group_(rank_.Axis("dp")),
      options_(options),
      place_(place),
      forwards_(models.size()),
      outputs_(models.size()) {
  for (const Trainable& model : models_) {
    names_.push_back(NameOf(names_.size(), model));
    cores_.push_back(&model.core());
    steps_before_.push_back(model.core().engine().step());
    model.core().membership().Enter(this);
  }
}

JoinGuard::Notices::~Notices() {
  for (ModelCore* core : cores_) core->membership().Leave();
}

absl::Status JoinGuard::Notices::Exchange(JoinNotice own) {
  own.models.resize(cores_.size());
  for (std::size_t i = 0; i < cores_.size(); ++i) {
    const ModelCore& core = *cores_[i];
    JoinNotice::Model& model = own.models[i];
    model.steps = cores_[i]->engine().step() - steps_before_[i];
    model.rate = core.optimizer().last_rate();
    model.discarded = core.discarded();
    model.synced = core.synced();
    model.frozen = core.frozen();
  }
  std::vector<std::int64_t> numbers(
      JoinNotice::NumbersOf(static_cast<int>(cores_.size())));
  own.Write(numbers.data());
  const actors::CallNote::Scope call(rank_.strand().call(), "Join", place_);
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::int64_t> all,
                          GatherNumbers(rank_, group_, numbers));
  notices_.clear();
  for (int r = 0; r < group_.size(); ++r) {
    notices_.push_back(JoinNotice::Read(all.data() + r * numbers.size(),
                                        static_cast<int>(cores_.size())));
  }
  return absl::OkStatus();
}

absl::Status JoinGuard::Notices::Follow() {
  std::vector<int> ended;
  std::vector<std::size_t> active;
  for (std::size_t i = 0; i < notices_.size(); ++i) {
    if (notices_[i].call == JoinCall::kEnded) {
      ended.push_back(NumberOf(i));
    } else {
      active.push_back(i);
    }
  }
  // At the end, buffers are those of the ranks that were the last to train.
  if (active.empty()) return absl::OkStatus();
  const JoinNotice& first = notices_[active[0]];
  for (std::size_t i : active) {
    if (first.Agrees(notices_[i])) continue;
    return Differ(first.ToString(NumberOf(active[0]), names_),
                  absl::StrCat(notices_[i].ToString(NumberOf(i), names_),
                               notices_[i].MoreThan(first, names_)));
  }
  if (options_.throw_on_early_termination && !ended.empty()) {
    return absl::OutOfRangeError(absl::StrCat(
        ended.size() == 1 ? "rank " : "ranks ", absl::StrJoin(ended, ", "),
        ended.size() == 1 ? " has" : " have",
        " no more batches where others have; give all as many, or leave out "
        "JoinOptions::throw_on_early_termination"));
  }
  ActiveRanks ranks;
  ranks.first = static_cast<int>(active[0]);
  ranks.all_per_active = static_cast<double>(notices_.size()) / active.size();
  ranks.self = !shadows_;
  for (ModelCore* core : cores_) {
    core->membership().Follow(ranks, /*scales_gradients=*/
                              !options_.divide_by_initial_world_size);
  }
  return absl::OkStatus();
}

absl::Status JoinGuard::Notices::OnForward(ModelCore& model, const Tensor& x) {
  if (shadows_) return absl::OkStatus();
  JoinNotice own;
  own.call = JoinCall::kForward;
  own.of = {IndexOf(model)};
  own.shape = x.shape();
  own.dtype = x.dtype();
  own.tracked = rank_.context().tape()->Tracks(x);
  TROUPE_RETURN_IF_ERROR(Exchange(std::move(own)));
  return Follow();
}

void JoinGuard::Notices::AfterForward(ModelCore& model, const Tensor& y) {
  forwards_[IndexOf(model)].push_back(y.tape_ref());
}

absl::Status JoinGuard::Notices::SetReached(const Tensor& root,
                                            JoinNotice* notice) const {
  const nn::Tape::Reach reach = rank_.context().tape()->ReachOf(root);
  for (std::size_t i = 0; i < forwards_.size(); ++i) {
    const std::vector<nn::TapeRef>& forwards = forwards_[i];
    std::int64_t& reached = notice->models[i].reached;
    if (forwards.size() <= JoinNotice::kForwardsMax) {
      for (std::size_t k = 0; k < forwards.size(); ++k) {
        if (reach.Has(forwards[k])) reached |= std::int64_t{1} << k;
      }
      continue;
    }
    if (!std::all_of(forwards.begin(), forwards.end(),
                     [&](const nn::TapeRef& y) { return reach.Has(y); })) {
      return absl::UnimplementedError(absl::StrCat(
          names_[i], " has had ", forwards.size(),
          " forwards since the last backward, and the loss depends on some of "
          "them alone; under Join() that may be ",
          JoinNotice::kForwardsMax,
          " forwards; run those of constants under NoGrad()"));
    }
    reached = JoinNotice::kAll;
  }
  return absl::OkStatus();
}

absl::Status JoinGuard::Notices::OnBackward(absl::Span<ModelCore* const> models,
                                            const Tensor& root) {
  if (shadows_) return absl::OkStatus();
  JoinNotice own;
  own.call = JoinCall::kBackward;
  own.models.resize(cores_.size());
  for (const ModelCore* model : models) own.of.push_back(IndexOf(*model));
  std::sort(own.of.begin(), own.of.end());
  TROUPE_RETURN_IF_ERROR(SetReached(root, &own));
  for (std::vector<nn::TapeRef>& forwards : forwards_) forwards.clear();
  TROUPE_RETURN_IF_ERROR(Exchange(std::move(own)));
  return Follow();
}

absl::Status JoinGuard::Notices::Error(const absl::Status& status) const {
  return absl::Status(
      status.code(),
      absl::StrCat(actors::CallText("Join", place_), ": ", status.message()));
}

void JoinGuard::Notices::Shadow() {
  if (!rank_.records()) {
    throw base::StatusError(Error(absl::FailedPreconditionError(
        "its block ends under a NoGrad guard, where no backward can be run; "
        "end that first")));
  }
  shadows_ = true;
  nn::Context& ctx = rank_.context();
  const bool training = ctx.training();
  std::vector<bool> synced;
  for (const ModelCore* core : cores_) synced.push_back(core->synced());
  // Its peers count the forwards that all ranks have made.
  for (std::size_t i = 0; i < cores_.size(); ++i) {
    outputs_[i].resize(forwards_[i].size());
  }
  ctx.set_training(true);
  while (true) {
    absl::Status status = Exchange({});
    if (status.ok()) status = Follow();
    if (!status.ok()) throw base::StatusError(Error(status));
    const auto peer = std::find_if(notices_.begin(), notices_.end(),
                                   [](const JoinNotice& notice) {
                                     return notice.call != JoinCall::kEnded;
                                   });
    if (peer == notices_.end()) break;
    CatchUp(*peer);
    for (const int i : peer->of) cores_[i]->set_synced(peer->models[i].synced);
    if (peer->call == JoinCall::kForward) {
      ShadowForward(*peer);
    } else {
      ShadowBackward(*peer);
    }
  }
  CatchUpWithLast();
  for (std::size_t i = 0; i < cores_.size(); ++i) {
    ModelCore& core = *cores_[i];
    core.SyncBuffers();
    if (!core.optimizer().attached()) {
      core.BroadcastParameters(core.membership().active().first);
    }
    core.set_synced(synced[i]);
  }
  ctx.set_training(training);
}

void JoinGuard::Notices::CatchUp(const JoinNotice& peer) {
  for (std::size_t i = 0; i < cores_.size(); ++i) {
    ModelCore& core = *cores_[i];
    const JoinNotice::Model& model = peer.models[i];
    if (core.engine().step() - steps_before_[i] < model.steps) {
      core.Step(place_, model.rate);
    }
    if (model.discarded && !core.discarded()) core.ZeroGrad();
  }
}

void JoinGuard::Notices::CatchUpWithLast() {
  JoinNotice last = notices_[0];
  for (const JoinNotice& notice : notices_) {
    for (std::size_t i = 0; i < cores_.size(); ++i) {
      if (notice.models[i].steps > last.models[i].steps) {
        last.models[i] = notice.models[i];
      }
    }
  }
  CatchUp(last);
}

void JoinGuard::Notices::ShadowForward(const JoinNotice& peer) {
  std::vector<std::int64_t> dims(peer.shape.dims().begin(),
                                 peer.shape.dims().end());
  if (dims.empty()) {
    throw base::StatusError(Error(
        absl::InvalidArgumentError("a peer's input is a scalar; under Join() "
                                   "its first axis must be that of samples")));
  }
  dims[0] = 0;
  ModelCore& core = *cores_[peer.of[0]];
  const bool frozen = peer.models[peer.of[0]].frozen;
  if (core.synced()) core.SyncBuffers();
  Var none = rank_.Zeros(Shape(dims), peer.dtype);
  Var output;
  const absl::Status status = base::Try([&] {
    const Frozen constants(core.module(), frozen);
    if (peer.tracked) {
      // Its layers have a backward, parameters or not.
      nn::Context& ctx = rank_.context();
      none = Var(ctx, ctx.tape()->Watch(none));
    } else if (frozen) {
      // It must not become a model of the next backward.
      const auto no_grad = rank_.NoGrad();
      core.module()(none);
      return;
    }
    output = nn::Sum(core.module()(none).Mean());
  });
  outputs_[peer.of[0]].push_back(output);
  if (status.ok()) return;
  throw base::StatusError(Error(absl::Status(
      status.code(),
      absl::StrCat("the forward of a batch of 0 rows, which a rank that has "
                   "ended runs while its peers train, has failed: ",
                   status.message()))));
}

void JoinGuard::Notices::ShadowBackward(const JoinNotice& peer) {
  Var sum;
  bool followed = true;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const std::int64_t reached = peer.models[i].reached;
    for (std::size_t k = 0; k < outputs_[i].size(); ++k) {
      if (reached != JoinNotice::kAll && (reached >> k) % 2 == 0) continue;
      const Var& output = outputs_[i][k];
      if (!output.defined()) {
        followed = false;
      } else if (sum.defined()) {
        sum = sum + output.Apply(nn::ops::Cast, sum.dtype());
      } else {
        sum = output;
      }
    }
  }
  if (!followed || !sum.defined()) {
    throw base::StatusError(Error(absl::FailedPreconditionError(
        "peers run a backward without a forward of the model under Join(), "
        "which a rank that has ended cannot follow; call the model before each "
        "Backward()")));
  }
  // A backward ends all that was recorded.
  for (std::vector<Var>& outputs : outputs_) outputs.clear();
  // A loss of no targets, for exact_mean: its gradients are zeros.
  const Var none = std::move(sum).View({1}).Slice(0, 0);
  nn::MeanSquaredError(none, rank_.Zeros({0}, none.dtype())).Backward();
}

JoinGuard::JoinGuard(const Trainable& ddp, const JoinOptions& options,
                     CallPlace place)
    : JoinGuard(std::vector<Trainable>{ddp}, options, place) {}

JoinGuard::JoinGuard(const std::vector<Trainable>& ddps,
                     const JoinOptions& options, CallPlace place)
    : exceptions_(std::uncaught_exceptions()) {
  const auto refuse = [&place](const std::string& why) {
    throw base::StatusError(absl::FailedPreconditionError(
        absl::StrCat(actors::CallText("Join", place), ": ", why)));
  };
  if (ddps.empty() || ddps.size() > JoinNotice::kModelsMax) {
    refuse(absl::StrCat("it takes 1 to ", JoinNotice::kModelsMax,
                        " models, not ", ddps.size()));
  }
  std::set<const ModelCore*> cores;
  for (const Trainable& ddp : ddps) {
    if (!ddp.core().distributed()) {
      refuse("the model has no DDP; make one first");
    }
    if (!cores.insert(&ddp.core()).second) {
      refuse("a model is given twice; leave out one of them");
    }
  }
  Rank& rank = ddps[0].rank();
  if (rank.joins()) {
    refuse(
        "another Join() holds on this rank; end its block first, or give one "
        "Join() all models: Join({a, b})");
  }
  if (!options.enable || rank.Axis("dp").size() == 1) return;
  notices_ = std::make_unique<Notices>(ddps, options, place);
}

JoinGuard::~JoinGuard() noexcept(false) {
  if (notices_ == nullptr || std::uncaught_exceptions() > exceptions_) return;
  notices_->Shadow();
}

}  // namespace troupe
