#include "troupe/work.h"

#include "troupe/internal/call_error.h"
#include "troupe/internal/work_state.h"

namespace troupe {

bool Work::done() const {
  if (state_ == nullptr) return true;
  if (!state_->done.ready()) return false;
  Land();
  return true;
}

void Work::Land() const {
  if (!state_->incoming.has_value() || !state_->done.status().ok()) return;
  ThrowOf(state_->name, state_->place,
          actors::Land(*state_->kernels, &*state_->incoming));
}

bool Work::released() const {
  return done() && (state_ == nullptr || !state_->incoming.has_value() ||
                    state_->incoming->copied.ready());
}

void Work::Wait() {
  if (state_ == nullptr) return;
  const actors::CallNote::Scope call(state_->strand->call(), state_->name,
                                     state_->place);
  const OpRecorder::Call recorded(
      *state_->recorder, "Wait",
      {&state_->collective.input, &state_->collective.range,
       state_->incoming.has_value() ? &state_->incoming->into : &state_->sent});
  ThrowOf(state_->name, state_->place,
          state_->strand->Await(*state_->comm, state_->done));
  Land();
}

comm::Communicator* Work::comm() const {
  return state_ == nullptr ? nullptr : state_->comm;
}

base::Event Work::event() const {
  return state_ == nullptr ? base::Event() : state_->done;
}

int Work::source() const {
  return state_ == nullptr || !state_->incoming.has_value()
             ? kAnySource
             : state_->incoming->arrival.source;
}

}  // namespace troupe
