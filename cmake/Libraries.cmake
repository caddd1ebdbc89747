# Third-party libraries, all from Debian 12 packages (scripts/packages.sh lists them). Linked statically: the shipped
# program must start on a machine where none of them is installed.
find_package(Threads REQUIRED)

function(tacho_static_library target archive)
  cmake_parse_arguments(A "" "" "USES" ${ARGN})
  find_library(${target}_ARCHIVE NAMES ${archive} REQUIRED)
  add_library(${target} INTERFACE)
  target_link_libraries(${target} INTERFACE ${${target}_ARCHIVE} ${A_USES})
endfunction()

tacho_static_library(lib_zstd libzstd.a)
tacho_static_library(lib_z libz.a)
tacho_static_library(lib_lzma liblzma.a)
tacho_static_library(lib_bz2 libbz2.a)
tacho_static_library(lib_elf libelf.a USES lib_z lib_zstd)
tacho_static_library(lib_dw libdw.a USES lib_elf lib_lzma lib_bz2 lib_z ${CMAKE_DL_LIBS})
tacho_static_library(lib_sqlite libsqlite3.a USES ${CMAKE_DL_LIBS} Threads::Threads m)
tacho_static_library(lib_yaml libyaml-cpp.a)
tacho_static_library(lib_xxhash libxxhash.a)
tacho_static_library(lib_tinfo libtinfo.a)
tacho_static_library(lib_capstone libcapstone.a)
tacho_static_library(lib_ncurses libncursesw.a USES lib_tinfo)

# fmt has no archive in Debian: src/base/fmt.cpp compiles it once.

if(EXISTS ${TACHO_CUDA_HOME}/include/cupti.h)
  set(TACHO_HAVE_CUDA_HEADERS ON)
else()
  set(TACHO_HAVE_CUDA_HEADERS OFF)
  message(STATUS "no CUDA headers at TACHO_CUDA_HOME=${TACHO_CUDA_HOME}: the tests against them are left out of this build")
endif()

if(TACHO_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
