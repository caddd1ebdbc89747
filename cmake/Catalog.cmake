# The metric catalog: tacho_catalog_compiler checks catalog/<vendor>/*.yaml and turns it into a source file of the target.

function(tacho_embed_catalog target)
  add_executable(tacho_catalog_compiler ${CMAKE_SOURCE_DIR}/src/metric/catalog/compiler/main.cpp)
  target_link_libraries(tacho_catalog_compiler PRIVATE tacho_metric_catalog)
  set_target_properties(tacho_catalog_compiler PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tools)

  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/catalog/*/*.yaml)
  list(FILTER files EXCLUDE REGEX /catalog/operators/)  # no metrics: src/efficiency reads them
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
