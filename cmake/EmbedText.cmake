# tacho_embed_text(target file symbol header-namespace): the file's bytes as a std::string_view in namespace tacho::<ns>.
# Run as a script (cmake -P) it writes the .cpp itself.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${INPUT} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
  file(WRITE ${OUTPUT} "// Generated from ${NAME}.\n#include <string_view>\nnamespace tacho::${NAMESPACE} {\n"
    "static constexpr char ${SYMBOL}Bytes[] = {${bytes}};\nextern const std::string_view ${SYMBOL};\n"
    "const std::string_view ${SYMBOL}{${SYMBOL}Bytes, sizeof ${SYMBOL}Bytes};\n}  // namespace tacho::${NAMESPACE}\n")
  return()
endif()

set(TACHO_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(tacho_embed_text target file symbol namespace)
  get_filename_component(name ${file} NAME)
  set(output ${CMAKE_BINARY_DIR}/gen/${namespace}/${symbol}.cpp)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${file} -DOUTPUT=${output} -DSYMBOL=${symbol} -DNAMESPACE=${namespace} -DNAME=${name}
            -P ${TACHO_EMBED_SCRIPT}
    DEPENDS ${file} ${TACHO_EMBED_SCRIPT} VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
