# CUDA examples, built where nvcc is: static runtime, so that they start wherever a driver is.
find_program(TACHO_NVCC nvcc HINTS ${TACHO_CUDA_HOME}/bin)
if(TACHO_NVCC)
  set(TACHO_CUDA_ARCHITECTURE "sm_90" CACHE STRING "nvcc -arch of the CUDA examples")
  set(cuda_examples)
  file(GLOB cuda_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cu)
  foreach(source ${cuda_sources})
    get_filename_component(name ${source} NAME_WE)
    set(program ${CMAKE_BINARY_DIR}/examples/${name}_cuda)
    add_custom_command(OUTPUT ${program}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/examples
      COMMAND ${TACHO_NVCC} -std=c++17 -O2 -arch=${TACHO_CUDA_ARCHITECTURE} -cudart static -o ${program} ${source}
      DEPENDS ${source} COMMENT "nvcc ${name}.cu" VERBATIM)
    list(APPEND cuda_examples ${program})
  endforeach()
  add_custom_target(examples_cuda ALL DEPENDS ${cuda_examples})
endif()
