// A vendor's library, loaded at run time.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace tacho::vendor {

class Library {
 public:
  /// The file that the environment variable `variable` names (empty: switched off), else the first of `names` that
  /// loads; nullptr when none does, with a sentence in `problems` if the user named a file.
  static std::unique_ptr<Library> open(const char* variable, std::initializer_list<const char*> names,
                                       std::vector<std::string>& problems);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library();
  /// nullptr when the library has no such function.
  template <typename F>
  void find(F*& function, const char* name) const {
    function = reinterpret_cast<F*>(symbol(name));
  }

 private:
  explicit Library(void* handle) : handle_(handle) {}
  void* symbol(const char* name) const;
  void* handle_;
};

}  // namespace tacho::vendor
