// What processes have in common that can share memory and Unix sockets.
//
//   if (theirs == HostKey()) UseSharedMemory();
//
// The identity of this boot of the kernel, and the network namespace (abstract
// Unix sockets end there): "6f1f...-4026531840". Where either cannot be read,
// it is a key that no other process has.
//
// Threads: any.

#ifndef COMM_CONNECT_HOST_KEY_H_
#define COMM_CONNECT_HOST_KEY_H_

#include <string>

namespace troupe::comm {

std::string HostKey();

}  // namespace troupe::comm

#endif  // COMM_CONNECT_HOST_KEY_H_
