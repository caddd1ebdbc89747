# The contents of an installation (and of the package of scripts/package.sh).
include(GNUInstallDirs)
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # only the target "product" is installed
if(NOT TACHO_FUZZ)
  install(TARGETS tacho RUNTIME DESTINATION bin)
  install(TARGETS tacho_target LIBRARY DESTINATION lib)
  install(FILES ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/${TACHO_PRELOAD_NAME} DESTINATION lib)
  install(TARGETS tacho_perf tacho_mpi tacho_watch_target LIBRARY DESTINATION lib)
  if(TARGET tacho_oclgrind)
    install(TARGETS tacho_oclgrind LIBRARY DESTINATION lib)
  endif()
  install(TARGETS tacho_roctx tacho_sdk_roctx LIBRARY DESTINATION lib/roctx)
  install(DIRECTORY share/tools/ DESTINATION share/tacho/tools USE_SOURCE_PERMISSIONS PATTERN "__pycache__" EXCLUDE)
  install(DIRECTORY share/grafana/ DESTINATION share/tacho/grafana)
  # In the build tree as in an installation: --torch-trace finds Python's part beside the program.
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/tacho)
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/python ${CMAKE_BINARY_DIR}/share/tacho/python SYMBOLIC)
  install(DIRECTORY python/ DESTINATION share/tacho/python PATTERN "__pycache__" EXCLUDE)
  install(FILES include/tacho/tacho.h include/tacho/live.h DESTINATION include/tacho OPTIONAL)
  install(FILES LICENSE README.md DESTINATION share/doc/tacho)
  install(DIRECTORY docs/ DESTINATION share/doc/tacho/docs FILES_MATCHING PATTERN "*.md")
  install(DIRECTORY examples/ DESTINATION share/sample USE_SOURCE_PERMISSIONS PATTERN "CMakeLists.txt" EXCLUDE PATTERN "__pycache__" EXCLUDE)
  configure_file(share/tacho.pc.in ${CMAKE_BINARY_DIR}/tacho.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/tacho.pc DESTINATION share/pkgconfig)
  install(FILES share/completion/tacho.bash DESTINATION share/bash-completion/completions RENAME tacho)
  install(FILES share/completion/_tacho DESTINATION share/zsh/vendor-completions)
  install(FILES share/completion/tacho.fish DESTINATION share/fish/vendor_completions.d)
  configure_file(cmake/modulefile.lua.in ${CMAKE_BINARY_DIR}/tacho.lua @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/tacho.lua DESTINATION share/modulefiles/tacho RENAME ${PROJECT_VERSION}.lua)

  # Symlinks under the names of the tools whose command lines tacho takes over: in the build tree, and installed where
  # they shadow nobody's own tools unless the user puts that folder into PATH. Names of scripts are scripts, because
  # users write `python3 rpd2tracing.py`; tacho itself is among them, because messages name it.
  file(STRINGS ${CMAKE_SOURCE_DIR}/src/cli/personalities/personalities.def lines REGEX "^TACHO_PERSONALITY")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/cli/personalities/personalities.def)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/personalities)
  foreach(line ${lines} "\"tacho\"")
    string(REGEX REPLACE ".*\"([^\"]+)\".*" "\\1" name "${line}")
    if(name MATCHES "^(.+)\\.(py|sh)$")
      set(program ${CMAKE_MATCH_1})
      set(script ${CMAKE_BINARY_DIR}/personalities/${name})
      if(IS_SYMLINK ${script})
        file(REMOVE ${script})  # else the program behind it would be written
      endif()
      configure_file(cmake/personality.${CMAKE_MATCH_2}.in ${script} @ONLY FILE_PERMISSIONS OWNER_READ OWNER_WRITE
        OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
      install(PROGRAMS ${script} DESTINATION libexec/tacho/personalities)
      continue()
    endif()
    file(CREATE_LINK ../bin/tacho ${CMAKE_BINARY_DIR}/personalities/${name} SYMBOLIC)
    install(CODE "file(MAKE_DIRECTORY \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/libexec/tacho/personalities\")
file(CREATE_LINK ../../../bin/tacho \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/libexec/tacho/personalities/${name}\" SYMBOLIC)")
  endforeach()

  # Man pages from docs/commands, where lowdown is installed (scripts/packages.sh package).
  find_program(TACHO_LOWDOWN lowdown)
  if(TACHO_LOWDOWN)
    find_package(Python3 REQUIRED COMPONENTS Interpreter)
    install(CODE "execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/man_pages.py
  \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/man/man1\" ${PROJECT_VERSION} COMMAND_ERROR_IS_FATAL ANY)")
  endif()

  # The Debian package: cpack -G DEB, by scripts/package.sh.
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_NAME tacho)
  set(CPACK_PACKAGE_CONTACT "tacho maintainers <maintainers@users.noreply.tacho.example>")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "profiler for GPU programs")
  set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "tacho traces, samples and counts what GPU programs do, on NVIDIA and AMD GPUs, any OpenCL device, and a
machine without a GPU. It reads and writes the formats of rocprofv3, ROCm Systems Profiler, rocmProfileData, ROCm
Compute Profiler, Perfetto and torch.profiler.")
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION devel)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.34)")
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS "ocl-icd-libopencl1, pocl-opencl-icd, oclgrind, python3")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/DebianLayout.cmake)
  include(CPack)
endif()
