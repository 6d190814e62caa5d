#include "actors/cluster/membership.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace troupe::actors {

absl::Status Membership::Add(const Join& join, caf::strong_actor_ptr sender) {
  TROUPE_RETURN_IF_ERROR(round_.Add(join));
  Process& process = members_[join.member.process];
  process.nonce = join.nonce;
  process.joining = std::move(sender);
  return absl::OkStatus();
}

bool Membership::Admit(const Join& join) {
  const int number = join.member.process;
  if (join.agent == nullptr || !IsOther(number) ||
      members_[number].agent != nullptr) {
    return false;
  }
  members_[number].agent = join.agent;
  return true;
}

std::vector<Membership::Addressed> Membership::TakeWelcomes() {
  std::vector<Addressed> welcomes;
  if (!round_.complete() || !offer_ || roster_) return welcomes;
  roster_.emplace(round_.Members());
  for (Process& process : members_) {
    Welcome welcome = *offer_;
    welcome.nonce = process.nonce;
    welcome.members = round_.Members();
    if (process.agent != nullptr) welcomes.emplace_back(process.agent, welcome);
    welcomes.emplace_back(std::exchange(process.joining, nullptr),
                          std::move(welcome));
  }
  return welcomes;
}

std::vector<caf::strong_actor_ptr> Membership::TakeJoining() {
  std::vector<caf::strong_actor_ptr> joining;
  for (Process& process : members_) {
    joining.push_back(std::exchange(process.joining, nullptr));
  }
  return joining;
}

bool Membership::IsAgent(const caf::strong_actor_ptr& actor) const {
  return actor != nullptr && std::any_of(members_.begin(), members_.end(),
                                         [&](const Process& process) {
                                           return process.agent == actor;
                                         });
}

bool Membership::IsPeer(std::int32_t generation, int process,
                        const caf::strong_actor_ptr& sender) const {
  // A process has no generation (0) before its welcome. Neither has a stranger
  // that joined with its number, but that one is not its agent.
  return IsOther(process) && members_[process].agent == sender &&
         (generation == 0 || IsOfJob(generation));
}

int Membership::ProcessOf(const caf::actor_addr& agent) const {
  for (int process = 0; process < size(); ++process) {
    const caf::strong_actor_ptr& its_agent = members_[process].agent;
    if (its_agent != nullptr && agent == its_agent) return process;
  }
  return -1;
}

bool Membership::AllHaveCrews() const {
  for (const Process& process : members_) {
    if (!process.has_crew) return false;
  }
  return true;
}

bool Membership::AllGone() const {
  return std::all_of(members_.begin(), members_.end(),
                     [](const Process& process) { return process.gone; });
}

void Membership::GiveUpMissing() {
  for (int process = 1; process < size(); ++process) {
    if (members_[process].agent == nullptr) SetGone(process);
  }
}

std::string Membership::Describe(int process) const {
  return roster_ ? roster_->Describe(process) : round_.Describe(process);
}

std::string Membership::DescribeWithoutCrew() const {
  std::string late;
  for (int process = 0; process < size(); ++process) {
    if (members_[process].has_crew) continue;
    absl::StrAppend(&late, late.empty() ? "" : ", ", Describe(process));
  }
  return absl::StrCat(late, " did not set up its ranks");
}

}  // namespace troupe::actors
