# What an installation (and the package of scripts/package.sh) consists of.
include(GNUInstallDirs)
if(NOT TACHO_FUZZ)
  install(TARGETS tacho RUNTIME DESTINATION bin)
  install(TARGETS tacho_target LIBRARY DESTINATION lib)
  install(FILES include/tacho/tacho.h DESTINATION include/tacho OPTIONAL)
  install(FILES LICENSE README.md DESTINATION share/doc/tacho)
  install(DIRECTORY docs/ DESTINATION share/doc/tacho/docs FILES_MATCHING PATTERN "*.md")
  install(DIRECTORY examples/ DESTINATION share/sample PATTERN "CMakeLists.txt" EXCLUDE PATTERN "__pycache__" EXCLUDE)
  configure_file(cmake/modulefile.lua.in ${CMAKE_BINARY_DIR}/tacho.lua @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/tacho.lua DESTINATION share/modulefiles/tacho RENAME ${PROJECT_VERSION}.lua)

  # Symlinks under the names of the tools whose command lines tacho takes over: in the build tree, and installed where
  # they shadow nobody's own tools unless the user puts that folder into PATH.
  file(STRINGS ${CMAKE_SOURCE_DIR}/src/cli/personalities.def lines REGEX "^TACHO_PERSONALITY")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/cli/personalities.def)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/personalities)
  foreach(line ${lines})
    string(REGEX REPLACE ".*\"([^\"]+)\".*" "\\1" name "${line}")
    file(CREATE_LINK ../bin/tacho ${CMAKE_BINARY_DIR}/personalities/${name} SYMBOLIC)
    install(CODE "file(MAKE_DIRECTORY \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/libexec/tacho/personalities\")
file(CREATE_LINK ../../../bin/tacho \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/libexec/tacho/personalities/${name}\" SYMBOLIC)")
  endforeach()
endif()
