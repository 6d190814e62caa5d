// The state of a Work (troupe/work.h): the call that has started it, its end,
// and the tensors that it uses until then. Its group makes it.
//
// Threads: the rank's own.

#ifndef TROUPE_INTERNAL_WORK_STATE_H_
#define TROUPE_INTERNAL_WORK_STATE_H_

#include <optional>

#include "actors/program/call_note.h"
#include "actors/program/program_messages.h"
#include "actors/program/program_rank.h"
#include "base/event.h"
#include "comm/communicator.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"
#include "troupe/profile/op_recorder.h"
#include "troupe/work.h"

namespace troupe {

struct Work::State {
  actors::ProgramRank* strand = nullptr;
  nn::Kernels* kernels = nullptr;
  comm::Communicator* comm = nullptr;
  OpRecorder* recorder = nullptr;
  const char* name = "";
  actors::CallPlace place;
  base::Event done;
  // The tensors, whose memory a device may use until the end.
  comm::Collective collective;
  nn::Tensor sent;
  std::optional<actors::Incoming> incoming;  // set for a receive
};

}  // namespace troupe

#endif  // TROUPE_INTERNAL_WORK_STATE_H_
