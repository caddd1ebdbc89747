# The metric catalog: catalog/<vendor>/*.yaml is checked and compiled into tacho_metric by tacho_catalog_compiler.

function(tacho_embed_catalog target)
  # What both the compiler and tacho itself (--config-dir) need of it, compiled once.
  set(shared)
  foreach(name catalog catalog_blob catalog_document catalog_yaml rules)
    list(APPEND shared ${CMAKE_SOURCE_DIR}/src/metric/${name}.cpp)
  endforeach()
  add_library(tacho_catalog OBJECT ${shared})
  target_link_libraries(tacho_catalog PRIVATE tacho_flags tacho_base lib_yaml)
  get_target_property(sources ${target} SOURCES)
  list(REMOVE_ITEM sources ${shared})
  set_target_properties(${target} PROPERTIES SOURCES "${sources}")
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:tacho_catalog>)

  add_executable(tacho_catalog_compiler ${CMAKE_SOURCE_DIR}/src/metric/compiler/main.cpp $<TARGET_OBJECTS:tacho_catalog>)
  target_link_libraries(tacho_catalog_compiler PRIVATE tacho_flags tacho_base lib_yaml)
  set_target_properties(tacho_catalog_compiler PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tools)

  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/catalog/*/*.yaml)
  set(folders)
  foreach(file ${files})
    get_filename_component(folder ${file} DIRECTORY)
    list(APPEND folders ${folder})
  endforeach()
  list(REMOVE_DUPLICATES folders)

  set(output ${CMAKE_BINARY_DIR}/gen/metric/embedded_catalog.cpp)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/gen/metric)
  add_custom_command(OUTPUT ${output}
    COMMAND tacho_catalog_compiler ${output} ${folders}
    DEPENDS tacho_catalog_compiler ${files}
    COMMENT "Compiling the metric catalog" VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
