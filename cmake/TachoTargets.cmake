# The functions that every CMakeLists.txt of the tree uses.

add_library(tacho_flags INTERFACE)
target_compile_options(tacho_flags INTERFACE -Wall -Wextra $<$<COMPILE_LANGUAGE:CXX>:-Wconversion> -fno-plt)
target_include_directories(tacho_flags INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/gen)
# Line tables cost a tenth of compiling and quadruple the program. Only examples and the programs of tests, whose lines
# tacho shows, have theirs.
if(NOT TACHO_LINES AND NOT TACHO_SANITIZE)
  target_compile_options(tacho_flags INTERFACE $<$<CONFIG:RelWithDebInfo>:-g0>)
endif()
if(TACHO_SANITIZE)
  target_compile_options(tacho_flags INTERFACE -fsanitize=${TACHO_SANITIZE} -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(tacho_flags INTERFACE -fsanitize=${TACHO_SANITIZE})
endif()

# tacho_unity(target [BY_FOLDER]): with TACHO_UNITY, up to twenty files of a target are compiled as one, which parses their
# headers and instantiates their templates once. Files with compile options of their own stay alone. Names in anonymous
# namespaces must therefore differ within a target, or with BY_FOLDER, which puts up to twenty files of one folder together,
# within a folder.
function(tacho_unity target)
  cmake_parse_arguments(A "BY_FOLDER" "" "" ${ARGN})
  if(NOT TACHO_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 20)
  # Anonymous namespaces are meant for the main file there, which they are not in. GCC collects its garbage from 512 MiB on
  # only: a tenth of its time for some 200 MiB more.
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage;--param=ggc-min-heapsize=524288>)
  if(A_BY_FOLDER)
    set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
    get_target_property(sources ${target} SOURCES)
    foreach(source ${sources})
      get_filename_component(folder ${source} DIRECTORY)
      file(RELATIVE_PATH folder ${CMAKE_CURRENT_SOURCE_DIR} ${folder}/)
      string(MAKE_C_IDENTIFIER "${folder}" folder)
      math(EXPR count_${folder} "0${count_${folder}} + 1")
      math(EXPR group "(${count_${folder}} - 1) / 20")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP "unit${folder}${group}")
    endforeach()
  endif()
endfunction()

# tacho_cold(target): -O1 with the inlining of -O2, which compiles in two thirds of the time. For folders that are not
# slower with it: code that runs once a command, such as options and tables, and loops that wait for memory. Code that
# reads, writes and decodes events is up to a fifth slower and keeps -O2.
function(tacho_cold target)
  set(flags -O1)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    list(APPEND flags -finline-functions -finline-small-functions -fstrict-aliasing)
  endif()
  target_compile_options(${target} PRIVATE "$<$<CONFIG:RelWithDebInfo>:${flags}>")
endfunction()

# tacho_library(folder [RECURSIVE] [FOLDERS name...] [SEPARATE] [COLD] [USES target...]): the static library of src/<folder>, with
# RECURSIVE of all folders below too, with FOLDERS of those named; its name is tacho_<folder with _>. SEPARATE: its files are always
# compiled one by one. COLD: see tacho_cold.
function(tacho_library folder)
  cmake_parse_arguments(A "RECURSIVE;SEPARATE;COLD" "" "FOLDERS;USES" ${ARGN})
  string(REPLACE "/" "_" name "tacho_${folder}")
  set(glob GLOB)
  if(A_RECURSIVE)
    set(glob GLOB_RECURSE)
  endif()
  file(${glob} sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cpp ${CMAKE_SOURCE_DIR}/src/${folder}/*.c)
  foreach(below IN LISTS A_FOLDERS)
    file(GLOB more CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/${below}/*.cpp)
    list(APPEND sources ${more})
  endforeach()
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC tacho_flags ${A_USES})
    if(NOT A_SEPARATE)
      tacho_unity(${name})
    endif()
    if(A_COLD)
      tacho_cold(${name})
    endif()
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE tacho_flags ${A_USES})
  endif()
endfunction()

# tacho_test(folder [RECURSIVE] [SEPARATE] [OPTIMISED] [SERIAL] [USES target...]): one GoogleTest program test_<folder>
# (_ for /) of tests/<folder>/*.cpp, which tests src/<folder>; one CTest entry per test case. Its own code is not
# optimised, which halves the cost of compiling it; the tested code is.
# RECURSIVE: the folders below are part of it, except folders "tool", which are programs of their own. SEPARATE: its
# files are always compiled one by one. OPTIMISED: its own code is optimised too, because it races with the tested code.
# SERIAL: optimised as well, and nothing else runs beside its tests, because they measure time.
function(tacho_test folder)
  cmake_parse_arguments(A "RECURSIVE;SEPARATE;OPTIMISED;SERIAL" "" "USES" ${ARGN})
  string(REPLACE "/" "_" name "test_${folder}")
  if(A_RECURSIVE)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*.cpp)
    list(FILTER sources EXCLUDE REGEX "/tool/")
  else()
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*.cpp)
  endif()
  if(NOT sources)
    return()
  endif()
  if(NOT TARGET tacho_test_main)
    add_library(tacho_test_main STATIC ${CMAKE_SOURCE_DIR}/tests/support/main.cpp)
    target_compile_definitions(tacho_test_main PRIVATE TACHO_TEST_BUILD="${CMAKE_BINARY_DIR}" TACHO_TEST_SOURCE="${CMAKE_SOURCE_DIR}")
    target_link_libraries(tacho_test_main PUBLIC tacho_flags GTest::gtest)
  endif()
  add_executable(${name} ${sources})
  if(NOT A_SEPARATE)
    tacho_unity(${name})
  endif()
  if(NOT A_SERIAL AND NOT A_OPTIMISED)
    target_compile_options(${name} PRIVATE -O0)
  endif()
  target_link_libraries(${name} PRIVATE ${A_USES} tacho_test_main)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 300 RUN_SERIAL ${A_SERIAL})
endfunction()

# tacho_fuzz(name SOURCES file... [USES target...]): a fuzz target with libFuzzer's entry points. With TACHO_FUZZ (preset
# fuzz, clang) it is linked with libFuzzer; otherwise with a driver that tries a few thousand inputs as CTest fuzz.<name>.
function(tacho_fuzz name)
  cmake_parse_arguments(A "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE tacho_flags ${A_USES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  if(TACHO_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/fuzz/replay_main.cpp)
    add_test(NAME fuzz.${name} COMMAND ${name} -runs=3000)
    set_tests_properties(fuzz.${name} PROPERTIES TIMEOUT 300)
  endif()
endfunction()
