// Key that is equal for processes that can share memory and Unix sockets.
//
//   if (theirs == HostKey()) UseSharedMemory();
//
// It consists of the boot id of the kernel, and the network namespace (abstract
// Unix sockets end at its border): "6f1f...-4026531840". If either cannot be
// read, it is a key that no other process has.
//
// Threads: any.

#ifndef COMM_CONNECT_HOST_KEY_H_
#define COMM_CONNECT_HOST_KEY_H_

#include <string>

namespace troupe::comm {

std::string HostKey();

}  // namespace troupe::comm

#endif  // COMM_CONNECT_HOST_KEY_H_
