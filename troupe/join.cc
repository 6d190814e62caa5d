#include "troupe/join.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_error.h"
#include "nn/autograd/create.h"
#include "nn/autograd/var_math.h"
#include "troupe/model_core.h"

namespace troupe {
namespace {

// Call that a rank is about to make.
enum class Call : std::int64_t { kEnded, kForward, kBackward };

const char* NameOf(Call call) {
  switch (call) {
    case Call::kForward:
      return "a forward";
    case Call::kBackward:
      return "a backward";
    case Call::kEnded:
      break;
  }
  return "the end of its batches";
}

// A rank's row of the exchange.
struct Notice {
  Call call = Call::kEnded;
  bool synced = true;      // whether the (next) backward reduces gradients
  std::int64_t steps = 0;  // number of Step()s under this guard
  double rate = 0;         // learning rate of the last of these
  // Whether ZeroGrad() was called since the last backward.
  bool discarded = false;
  // A forward's input.
  Shape shape;
  DType dtype = DType::kF32;
};

constexpr int kHead = 7;
constexpr int kNumbers = kHead + Shape::kMaxRank;

void Write(const Notice& notice, std::int64_t* numbers) {
  std::fill(numbers, numbers + kNumbers, 0);
  numbers[0] = static_cast<std::int64_t>(notice.call);
  numbers[1] = notice.synced;
  numbers[2] = notice.steps;
  numbers[3] = notice.discarded;
  numbers[4] = static_cast<std::int64_t>(notice.dtype);
  numbers[5] = notice.shape.rank();
  std::memcpy(&numbers[6], &notice.rate, sizeof(notice.rate));
  std::copy(notice.shape.dims().begin(), notice.shape.dims().end(),
            numbers + kHead);
}

Notice Read(const std::int64_t* numbers) {
  Notice notice;
  notice.call = static_cast<Call>(numbers[0]);
  notice.synced = numbers[1] != 0;
  notice.steps = numbers[2];
  notice.discarded = numbers[3] != 0;
  notice.dtype = static_cast<DType>(numbers[4]);
  std::memcpy(&notice.rate, &numbers[6], sizeof(notice.rate));
  notice.shape = Shape(absl::MakeConstSpan(numbers + kHead, numbers[5]));
  return notice;
}

absl::Status Differ(const std::string& first, const std::string& second) {
  return absl::FailedPreconditionError(absl::StrCat(
      first, ", ", second,
      "; under Join() all ranks that have not ended call forward, Backward() "
      "and Step() of the model in the same order"));
}

}  // namespace

class JoinGuard::Notices : private ModelCore::CallObserver {
 public:
  Notices(ModelCore& core, const JoinOptions& options, CallPlace place);
  ~Notices() override;

  // Answers the peers until all have ended.
  void Shadow();

 private:
  // ModelCore::CallObserver:
  absl::Status OnForward(const Tensor& x) override;
  absl::Status OnBackward() override;

  // Exchanges this rank's notice for those of all.
  absl::Status Exchange(Notice own);
  // Sets who trains, after an exchange. Returns an error if the peers' calls
  // differ, or if a rank may not end early.
  absl::Status Follow();
  // Makes the calls that `peer` has made since its last notice.
  void CatchUp(const Notice& peer);
  void ShadowForward(const Notice& peer);
  void ShadowBackward();
  int NumberOf(std::size_t i) const { return group_.ranks()[i]; }

  ModelCore& core_;
  Rank& rank_;
  Group& group_;
  const JoinOptions options_;
  const CallPlace place_;
  const std::int64_t steps_before_;
  const Var own_, all_;  // i64 [kNumbers] and [ranks, kNumbers]
  std::vector<Notice> notices_;
  bool shadows_ = false;
  Var outputs_;  // sum of all outputs since the last backward of a shadow
};

JoinGuard::Notices::Notices(ModelCore& core, const JoinOptions& options,
                            CallPlace place)
    : core_(core),
      rank_(core.rank()),
      group_(rank_.Axis("dp")),
      options_(options),
      place_(place),
      steps_before_(core.engine().step()),
      own_(rank_.Zeros({kNumbers}, DType::kI64)),
      all_(rank_.Zeros({group_.size(), kNumbers}, DType::kI64)) {
  core_.set_observer(this);
}

JoinGuard::Notices::~Notices() {
  core_.set_observer(nullptr);
  core_.set_active({});
  core_.set_gradient_factor(1);
}

absl::Status JoinGuard::Notices::Exchange(Notice own) {
  own.steps = core_.engine().step() - steps_before_;
  own.rate = core_.last_rate();
  own.discarded = core_.discarded();
  Write(own, own_.tensor().data<std::int64_t>());
  const actors::CallNote::Scope call(rank_.strand().call(), "Join", place_);
  TROUPE_RETURN_IF_ERROR(
      rank_.strand().Run(group_.comm(), comm::AllGather(own_, all_)));
  notices_.clear();
  for (int r = 0; r < group_.size(); ++r) {
    notices_.push_back(Read(all_.tensor().data<std::int64_t>() + r * kNumbers));
  }
  return absl::OkStatus();
}

absl::Status JoinGuard::Notices::Follow() {
  std::vector<int> ended;
  std::vector<std::size_t> active;
  for (std::size_t i = 0; i < notices_.size(); ++i) {
    if (notices_[i].call == Call::kEnded) {
      ended.push_back(NumberOf(i));
    } else {
      active.push_back(i);
    }
  }
  // At the end, buffers are those of the ranks that were the last to train.
  if (active.empty()) return absl::OkStatus();
  const Notice& first = notices_[active[0]];
  for (std::size_t i : active) {
    const Notice& other = notices_[i];
    const auto says = [&](std::size_t who, const Notice& notice) {
      return absl::StrCat("rank ", NumberOf(who), " is at ",
                          NameOf(notice.call),
                          notice.synced ? "" : " under NoSync()", " after ",
                          notice.steps, " steps");
    };
    if (other.call != first.call || other.synced != first.synced ||
        other.steps != first.steps) {
      return Differ(says(active[0], first), says(i, other));
    }
  }
  if (options_.throw_on_early_termination && !ended.empty()) {
    return absl::OutOfRangeError(absl::StrCat(
        ended.size() == 1 ? "rank " : "ranks ", absl::StrJoin(ended, ", "),
        ended.size() == 1 ? " has" : " have",
        " no more batches where others have "
        "(JoinOptions::throw_on_early_termination)"));
  }
  ActiveRanks ranks;
  ranks.first = static_cast<int>(active[0]);
  ranks.all_per_active = static_cast<double>(notices_.size()) / active.size();
  ranks.self = !shadows_;
  core_.set_active(ranks);
  if (!options_.divide_by_initial_world_size) {
    core_.set_gradient_factor(ranks.all_per_active);
  }
  return absl::OkStatus();
}

absl::Status JoinGuard::Notices::OnForward(const Tensor& x) {
  if (shadows_) return absl::OkStatus();
  Notice own;
  own.call = Call::kForward;
  own.synced = core_.synced();
  own.shape = x.shape();
  own.dtype = x.dtype();
  TROUPE_RETURN_IF_ERROR(Exchange(std::move(own)));
  return Follow();
}

absl::Status JoinGuard::Notices::OnBackward() {
  if (shadows_) return absl::OkStatus();
  Notice own;
  own.call = Call::kBackward;
  own.synced = core_.synced();
  TROUPE_RETURN_IF_ERROR(Exchange(std::move(own)));
  return Follow();
}

void JoinGuard::Notices::Shadow() {
  if (!rank_.records()) {
    throw base::StatusError(absl::FailedPreconditionError(absl::StrCat(
        actors::CallText("Join", place_),
        ": its block ends under a NoGrad guard, where no backward can be run; "
        "end that first")));
  }
  shadows_ = true;
  nn::Context& ctx = rank_.context();
  const bool training = ctx.training(), synced = core_.synced();
  ctx.set_training(true);
  for (bool more = true; more;) {
    absl::Status status = Exchange({});
    if (status.ok()) status = Follow();
    if (!status.ok()) {
      throw base::StatusError(absl::Status(
          status.code(), absl::StrCat(actors::CallText("Join", place_), ": ",
                                      status.message())));
    }
    const auto peer = std::find_if(
        notices_.begin(), notices_.end(),
        [](const Notice& notice) { return notice.call != Call::kEnded; });
    more = peer != notices_.end();
    if (!more) {
      // The last peers may have made a step behind their last notice.
      CatchUp(*std::max_element(
          notices_.begin(), notices_.end(),
          [](const Notice& a, const Notice& b) { return a.steps < b.steps; }));
      break;
    }
    CatchUp(*peer);
    core_.set_synced(peer->synced);
    if (peer->call == Call::kForward) {
      ShadowForward(*peer);
    } else {
      ShadowBackward();
    }
  }
  core_.SyncBuffers();
  if (!core_.attached()) core_.BroadcastParameters(core_.active().first);
  core_.set_synced(synced);
  ctx.set_training(training);
}

void JoinGuard::Notices::CatchUp(const Notice& peer) {
  if (core_.engine().step() - steps_before_ < peer.steps) {
    core_.Step(place_, peer.rate);
  }
  if (peer.discarded && !core_.discarded()) core_.ZeroGrad();
}

void JoinGuard::Notices::ShadowForward(const Notice& peer) {
  std::vector<std::int64_t> dims(peer.shape.dims().begin(),
                                 peer.shape.dims().end());
  if (dims.empty()) {
    throw base::StatusError(absl::InvalidArgumentError(absl::StrCat(
        actors::CallText("Join", place_),
        ": a peer's input is a scalar, which has no axis of samples")));
  }
  dims[0] = 0;
  if (peer.synced) core_.SyncBuffers();
  const Var none = rank_.Zeros(Shape(dims), peer.dtype);
  const absl::Status status = base::Try([&] {
    const Var sum = nn::Sum(core_.module()(none).Mean());
    outputs_ = outputs_.defined() ? outputs_ + sum : sum;
  });
  if (status.ok()) return;
  throw base::StatusError(absl::Status(
      status.code(),
      absl::StrCat(
          actors::CallText("Join", place_),
          ": the forward of a batch of 0 rows, which a rank that has ended "
          "runs while its peers train, has failed: ",
          status.message())));
}

void JoinGuard::Notices::ShadowBackward() {
  if (!outputs_.defined()) {
    throw base::StatusError(absl::FailedPreconditionError(absl::StrCat(
        actors::CallText("Join", place_),
        ": peers run a backward without a forward of the model under Join(), "
        "which a rank that has ended cannot follow")));
  }
  // A loss of no targets, for exact_mean: its gradients are zeros.
  const Var none = std::move(outputs_).View({1}).Slice(0, 0);
  outputs_ = Var();
  nn::MeanSquaredError(none, rank_.Zeros({0}, none.dtype())).Backward();
}

JoinGuard::JoinGuard(const Trainable& ddp, const JoinOptions& options,
                     CallPlace place)
    : exceptions_(std::uncaught_exceptions()) {
  ModelCore& core = ddp.core();
  const auto refuse = [&place](const char* why) {
    throw base::StatusError(absl::FailedPreconditionError(
        absl::StrCat(actors::CallText("Join", place), ": ", why)));
  };
  if (!core.distributed()) refuse("the model has no DDP; make one first");
  if (core.rank().joins()) {
    refuse("another Join() holds on this rank; end its block first");
  }
  if (!options.enable || core.rank().Axis("dp").size() == 1) return;
  notices_ = std::make_unique<Notices>(core, options, place);
}

JoinGuard::~JoinGuard() noexcept(false) {
  if (notices_ == nullptr || std::uncaught_exceptions() > exceptions_) return;
  notices_->Shadow();
}

}  // namespace troupe
