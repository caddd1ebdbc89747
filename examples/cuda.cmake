# CUDA programs, built where nvcc is: static runtime, so that they start wherever a driver is.
find_program(TACHO_NVCC nvcc HINTS ${TACHO_CUDA_HOME}/bin)
set(TACHO_CUDA_ARCH "sm_80" CACHE STRING "nvcc -arch of the CUDA examples")

# tacho_cuda_program(folder/name source [nvcc options]): build/<folder>/<name>.
function(tacho_cuda_program program source)
  if(NOT TACHO_NVCC)
    return()
  endif()
  set(output ${CMAKE_BINARY_DIR}/${program})
  get_filename_component(folder ${output} DIRECTORY)
  get_filename_component(name ${output} NAME)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND ${TACHO_NVCC} -O2 -std=c++17 -arch=${TACHO_CUDA_ARCH} -cudart static ${ARGN} -o ${output} ${source}
    DEPENDS ${source} COMMENT "nvcc ${name}" VERBATIM)
  add_custom_target(cuda_${name} ALL DEPENDS ${output})
endfunction()

tacho_cuda_program(examples/launch_storm_cuda ${CMAKE_CURRENT_SOURCE_DIR}/launch_storm.cu)
tacho_cuda_program(tests/device/cuda_endings ${CMAKE_SOURCE_DIR}/tests/device/cuda_endings.cu)
tacho_cuda_program(tests/device/cuda_endings_ptds ${CMAKE_SOURCE_DIR}/tests/device/cuda_endings.cu --default-stream per-thread)
tacho_cuda_program(tests/device/cuda_kernels ${CMAKE_SOURCE_DIR}/tests/device/cuda_kernels.cu)
tacho_cuda_program(tests/device/cuda_variables ${CMAKE_SOURCE_DIR}/tests/device/cuda_variables.cu)
tacho_cuda_program(tests/device/cuda_roofline ${CMAKE_SOURCE_DIR}/tests/device/cuda_roofline.cu)

find_path(TACHO_CUPTI_HEADERS cupti.h PATHS ${TACHO_CUDA_HOME}/extras/CUPTI/include ${TACHO_CUDA_HOME}/include NO_DEFAULT_PATH)
if(TACHO_CUPTI_HEADERS)
  tacho_cuda_program(tests/device/cupti_finalize ${CMAKE_SOURCE_DIR}/tests/device/cupti_finalize.cu -I${TACHO_CUPTI_HEADERS})
endif()
