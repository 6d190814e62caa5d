// What travels between two processes: the types of frames, and their fields.
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

#ifndef COMM_SPANNING_WIRE_H_
#define COMM_SPANNING_WIRE_H_

#include <cstddef>
#include <cstdint>

#include "comm/link.h"

namespace troupe::comm::internal {

enum class FrameType : std::uint16_t {
  kNote = 1,  // all ranks of a process have started collective `seq`
  kPartial,   // a node's sum of one piece, for whoever computes its root
  kValue,     // what a piece becomes, for a rank's output
  kAbort,
  kDepart,  // a rank is gone after `seq` collectives
  kOffer,   // a message or parcel, number `seq` from this process
  kClear,   // there is room for number `seq` of yours
  kData,    // of number `seq`
  kBye,     // nothing comes after it
  kCredit,  // one more piece may come whose parts you send me
  // Where all reach each other's memory (direct_work.h):
  kLetGo,     // of collective `seq` all that I do is done, in your memory too
  kLetGoAll,  // of all collectives of the group, for ever
};

// Where a range lies in memory that the sender of a note lends (link.h); no
// range: nobody needs it.
struct Reference {
  std::uint64_t range = 0;
  std::uint64_t offset = 0;
};

// Longer texts of errors are cut.
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

#endif  // COMM_SPANNING_WIRE_H_
