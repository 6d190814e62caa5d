// Declares names that the usage comments in comm/shm/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_COMM_SHM_H_
#define TESTS_USAGE_WORDS_COMM_SHM_H_

#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "base/check.h"
#include "base/files/owned_fd.h"
#include "comm/fabric.h"
#include "comm/shm/lent_ranges.h"
#include "comm/shm/sealed_file.h"
#include "comm/shm/shared_memory.h"
#include "comm/shm/shm_segment.h"

namespace troupe::comm::usage {
namespace ring_h {
extern RingHead head;
extern char* const data;
extern const std::size_t ring_bytes;
extern const Frame frame;
extern const char* const payload;
void Show(const Frame& frame, const char* payload);
}  // namespace ring_h

namespace sealed_file_h {
extern base::OwnedFd received;
void SendDescriptor(int fd);
}  // namespace sealed_file_h

namespace shared_memory_h {
extern FabricOptions options;
extern const std::shared_ptr<SharedMemory> memory;
extern const absl::Span<char> pages;
}  // namespace shared_memory_h

namespace lent_ranges_h {
extern const SharedRange range;
extern base::OwnedFd received;
extern const std::uint64_t id, offset;
extern const std::size_t count;
}  // namespace lent_ranges_h

namespace doorbell_h {
extern const std::shared_ptr<ShmSegment> segment;
extern const int side;
void SendWakeUp();
bool HasWork();
void WaitForWakeUp();
void LookForWork();
}  // namespace doorbell_h

namespace control_socket_h {
extern base::OwnedFd connected;
extern const Frame offer;
extern const SharedRange range;
void Withdraw();
void Map(std::uint64_t id, base::OwnedFd file);
}  // namespace control_socket_h

namespace shm_segment_h {
extern base::OwnedFd received;
void SendDescriptor(int fd);
}  // namespace shm_segment_h

namespace shm_link_h {
extern const std::shared_ptr<ShmSegment> segment;
extern base::OwnedFd socket;
}  // namespace shm_link_h

}  // namespace troupe::comm::usage

#endif  // TESTS_USAGE_WORDS_COMM_SHM_H_
