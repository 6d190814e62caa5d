// Returns the name of a type as in the source code, for messages.
//
//   TypeName(typeid(module));   // "troupe::nn::Linear"

#ifndef BASE_TYPE_NAME_H_
#define BASE_TYPE_NAME_H_

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <typeinfo>

namespace troupe::base {

inline std::string TypeName(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  return name == nullptr ? type.name() : name.get();
}

}  // namespace troupe::base

#endif  // BASE_TYPE_NAME_H_
