// The protocol between two processes: the types of frames, and their fields.
//
//   Frame note = MakeFrame(FrameType::kNote, group, seq);
//   note.words[0] = Pack(collective);
//
// docs/collectives.md, "Between processes", has the protocol.
//
//     type      tag         part           words             payload
//     kNote     references? lowest rank    signature,        small parts,
//                                          settings, replicas references
//     kPartial  block key   node           first element     elements
//     kValue    block key   -              first element     elements
//     kAbort    -           -              code              text
//     kDepart   -           rank           -                 -
//     kOffer    tag/channel header bytes   bytes, own, own   header, small data
//     kClear    -           -              -                 -
//     kData     -           -              first byte        bytes
//     kBye      -           -              -                 -
//     kCredit   -           -              -                 -
//     kLetGo    -           -              -                 -
//     kLetGoAll -           -              -                 -

#ifndef COMM_SPANNING_FRAMES_WIRE_H_
#define COMM_SPANNING_FRAMES_WIRE_H_

#include <cstddef>
#include <cstdint>

#include "comm/link.h"

namespace troupe::comm::internal {

enum class FrameType : std::uint16_t {
  kNote = 1,  // all ranks of a process have started collective `seq`
  kPartial,   // a node's sum of one piece, for a member that computes its root
  kValue,     // the value of a piece, for a rank's output
  kAbort,
  kDepart,  // a rank has left after `seq` collectives
  kOffer,   // a message or parcel, number `seq` from this process
  kClear,   // this process has memory for your offer number `seq`
  kData,    // data of offer number `seq`
  kBye,     // the last frame of the link
  kCredit,  // room for the parts of one more piece
  // For collectives by reference (direct_work.h):
  kLetGo,     // I have finished collective `seq`, in your memory too
  kLetGoAll,  // the same for all collectives of the group, for ever
};

// Location of a range in memory that the sender of a note lends (link.h); range
// 0: no process needs it.
struct Reference {
  std::uint64_t range = 0;
  std::uint64_t offset = 0;
};

// Limit on the text of an error; longer ones are cut.
inline constexpr std::size_t kAbortTextMax = 4096;

inline Frame MakeFrame(FrameType type, std::uint32_t group, std::uint64_t seq) {
  Frame frame;
  frame.type = static_cast<std::uint16_t>(type);
  frame.group = group;
  frame.seq = seq;
  return frame;
}

inline FrameType TypeOf(const Frame& frame) {
  return static_cast<FrameType>(frame.type);
}

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_FRAMES_WIRE_H_
