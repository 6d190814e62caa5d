#include "actors/cluster/control_client.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "actors/caf/actor_timeout.h"
#include "base/check.h"
#include "base/field_error.h"

namespace troupe::actors {
namespace {

// Interval at which a waiting call checks whether it must give up.
constexpr absl::Duration kLookInterval = absl::Milliseconds(100);

// A key that is never set: a pending GetKey for it is answered only when the
// coordinator refuses all requests.
constexpr char kNeverSet[] = "end";

absl::Status GivenUp() {
  return absl::CancelledError("given up before all processes were there");
}

absl::Status StatusOf(const Refused& refused) {
  return absl::Status(static_cast<absl::StatusCode>(refused.code),
                      refused.message);
}

}  // namespace

ControlClient::ControlClient(caf::actor_system& system,
                             CoordinatorActor coordinator,
                             std::shared_ptr<absl::Notification> give_up)
    : self_(system),
      coordinator_(std::move(coordinator)),
      give_up_(std::move(give_up)) {
  address_ = caf::actor_cast<caf::strong_actor_ptr>(self_);
}

template <typename Answer, typename Message, typename Accept>
absl::StatusOr<Answer> ControlClient::Call(const Message& message,
                                           absl::Duration timeout,
                                           Accept accept) {
  if (!refused_.ok()) return refused_;
  const absl::Time deadline = absl::Now() + timeout;
  std::optional<Answer> answer;
  bool late = false;
  self_->send(coordinator_, message);
  while (!answer && !late && refused_.ok()) {
    if (give_up_ != nullptr && give_up_->HasBeenNotified()) {
      return GivenUp();
    }
    const absl::Duration left =
        std::max(deadline - absl::Now(), absl::ZeroDuration());
    const absl::Duration look = std::min(left, kLookInterval);
    self_->receive(
        [&](const Answer& each) {
          if (accept(each)) answer = each;
        },
        [&](const Refused& refused) { refused_ = StatusOf(refused); },
        caf::after(ActorTimeout(look)) >> [&] { late = look == left; });
  }
  if (answer) return *std::move(answer);
  if (!refused_.ok()) return refused_;
  return absl::DeadlineExceededError(absl::StrCat("no answer within ",
                                                  absl::FormatDuration(timeout),
                                                  "; see what process 0 says"));
}

absl::StatusOr<Welcome> ControlClient::Join(const actors::Join& join,
                                            absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  return Call<Welcome>(join, timeout, [&](const Welcome& welcome) {
    return welcome.nonce == join.nonce;
  });
}

absl::StatusOr<SupervisorActor> ControlClient::AwaitSupervisor(
    std::int32_t generation, absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  TROUPE_ASSIGN_OR_RETURN(
      const SupervisorIs is,
      Call<SupervisorIs>(
          GetSupervisor{generation}, timeout,
          [](const SupervisorIs& each) { return each.supervisor != nullptr; }));
  return caf::actor_cast<SupervisorActor>(is.supervisor);
}

absl::Status ControlClient::Set(const std::string& key, std::string value) {
  absl::MutexLock lock(&mutex_);
  if (!refused_.ok()) return refused_;
  self_->send(coordinator_, SetKey{key, std::move(value)});
  return absl::OkStatus();
}

absl::StatusOr<std::string> ControlClient::Get(const std::string& key,
                                               absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  absl::StatusOr<KeyValue> value =
      Call<KeyValue>(GetKey{key}, timeout,
                     [&](const KeyValue& each) { return each.key == key; });
  if (value.ok()) return std::move(value->value);
  if (!absl::IsDeadlineExceeded(value.status())) return value.status();
  return base::WithMessage(value.status(),
                           absl::StrCat(key, ": ", value.status().message()));
}

absl::Status ControlClient::Check() {
  absl::MutexLock lock(&mutex_);
  if (give_up_ != nullptr && give_up_->HasBeenNotified()) return GivenUp();
  if (!awaits_end_) self_->send(coordinator_, GetKey{kNeverSet});
  awaits_end_ = true;
  for (bool more = true; more && refused_.ok();) {
    self_->receive(
        [&](const Refused& refused) { refused_ = StatusOf(refused); },
        caf::after(ActorTimeout(absl::ZeroDuration())) >>
            [&] { more = false; });
  }
  return refused_;
}

}  // namespace troupe::actors
