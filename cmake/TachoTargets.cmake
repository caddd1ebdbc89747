# The functions that every CMakeLists.txt of the tree uses.

add_library(tacho_flags INTERFACE)
target_compile_options(tacho_flags INTERFACE -Wall -Wextra $<$<COMPILE_LANGUAGE:CXX>:-Wconversion> -fno-plt)
target_include_directories(tacho_flags INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/gen)
if(TACHO_SANITIZE)
  target_compile_options(tacho_flags INTERFACE -fsanitize=${TACHO_SANITIZE} -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(tacho_flags INTERFACE -fsanitize=${TACHO_SANITIZE})
endif()

# tacho_library(folder [USES target...]): the static library of src/<folder>; its name is tacho_<folder with _>.
function(tacho_library folder)
  cmake_parse_arguments(A "" "" "USES" ${ARGN})
  string(REPLACE "/" "_" name "tacho_${folder}")
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cpp ${CMAKE_SOURCE_DIR}/src/${folder}/*.c)
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC tacho_flags ${A_USES})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE tacho_flags ${A_USES})
  endif()
endfunction()

# tacho_test(folder [USES target...]): one GoogleTest program of tests/<folder>/*.cpp, one CTest entry per test case.
function(tacho_test folder)
  cmake_parse_arguments(A "" "" "USES" ${ARGN})
  string(REPLACE "/" "_" name "test_${folder}")
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE tacho_flags ${A_USES} GTest::gtest GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 300
    ENVIRONMENT "TACHO_BUILD=${CMAKE_BINARY_DIR};TACHO_SOURCE=${CMAKE_SOURCE_DIR}")
endfunction()

# tacho_fuzz(name [USES target...]): the libFuzzer program fuzz_<name> of tests/fuzz/<name>_fuzz.cpp (preset fuzz), and one
# CTest entry that runs it for a short time. Inputs worth keeping lie in tests/fuzz/corpus/<name>/.
function(tacho_fuzz name)
  if(NOT TACHO_FUZZ)
    return()
  endif()
  cmake_parse_arguments(A "" "" "USES" ${ARGN})
  add_executable(fuzz_${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/${name}_fuzz.cpp)
  target_link_libraries(fuzz_${name} PRIVATE tacho_flags ${A_USES})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  set(corpus ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
  if(NOT EXISTS ${corpus})
    set(corpus "")
  endif()
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz/found/${name})
  add_test(NAME fuzz.${name} COMMAND fuzz_${name} -max_total_time=20 -timeout=10 -rss_limit_mb=2048
    ${CMAKE_BINARY_DIR}/fuzz/found/${name} ${corpus})
endfunction()
