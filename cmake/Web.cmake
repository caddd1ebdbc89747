# The pages of analyze (web/dist/index.html), of view (view.html), of flame (flame.html) and of watch (watch.html). The repository holds them built, so that
# building tacho needs no Node.js; scripts/web.sh makes them again from web/src. With tests, Vite builds them once more in a
# copy of web/ under the build folder (source trees stay clean and build folders do not disturb each other), and the tests
# web.page, web.view_page, web.flame_page and web.watch_page compare them byte for byte.
tacho_embed_text(tacho_metric_render ${CMAKE_SOURCE_DIR}/web/dist/index.html kAnalysisPage metric)
tacho_embed_text(tacho_view ${CMAKE_SOURCE_DIR}/web/dist/view.html kViewPage view)
tacho_embed_text(tacho_format_stacks ${CMAKE_SOURCE_DIR}/web/dist/flame.html kFlamePage format)
if(NOT TACHO_TESTS)
  return()
endif()

find_program(TACHO_NODE node)
find_program(TACHO_NPM npm)
if(NOT TACHO_NODE OR NOT TACHO_NPM)
  message(FATAL_ERROR "Node.js and npm test the HTML report (web/) and are not in PATH: scripts/packages.sh test installs "
    "them, or: apt-get install nodejs npm. Without tests (-DTACHO_TESTS=OFF) they are not needed.")
endif()
execute_process(COMMAND ${TACHO_NODE} --version OUTPUT_VARIABLE node_version OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT node_version MATCHES "^v([0-9]+)" OR CMAKE_MATCH_1 LESS 18)
  message(FATAL_ERROR "${TACHO_NODE} is ${node_version}; testing the HTML report (web/) needs Node.js 18 or newer")
endif()

set(TACHO_WEB ${CMAKE_BINARY_DIR}/web CACHE INTERNAL "where the HTML report is built again")
file(GLOB_RECURSE web_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/src/*)
set(web_files ${CMAKE_SOURCE_DIR}/web/index.html ${CMAKE_SOURCE_DIR}/web/view.html ${CMAKE_SOURCE_DIR}/web/flame.html ${CMAKE_SOURCE_DIR}/web/watch.html ${CMAKE_SOURCE_DIR}/web/vite.config.ts ${CMAKE_SOURCE_DIR}/web/svelte.config.js ${CMAKE_SOURCE_DIR}/web/tsconfig.json)
set(web_packages ${CMAKE_SOURCE_DIR}/web/package.json ${CMAKE_SOURCE_DIR}/web/package-lock.json)

add_custom_command(OUTPUT ${TACHO_WEB}/packages.stamp
  COMMAND ${CMAKE_COMMAND} -E make_directory ${TACHO_WEB}
  COMMAND ${CMAKE_COMMAND} -E copy ${web_packages} ${TACHO_WEB}
  COMMAND ${CMAKE_COMMAND} -E chdir ${TACHO_WEB} ${TACHO_NPM} ci --ignore-scripts --no-audit --no-fund --loglevel=error
  COMMAND ${CMAKE_COMMAND} -E touch ${TACHO_WEB}/packages.stamp
  DEPENDS ${web_packages} COMMENT "npm packages of the HTML report" VERBATIM)
add_custom_command(OUTPUT ${TACHO_WEB}/dist/index.html ${TACHO_WEB}/dist/view.html ${TACHO_WEB}/dist/flame.html ${TACHO_WEB}/dist/watch.html
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${TACHO_WEB}/src
  COMMAND ${CMAKE_COMMAND} -E copy_directory ${CMAKE_SOURCE_DIR}/web/src ${TACHO_WEB}/src
  COMMAND ${CMAKE_COMMAND} -E copy ${web_files} ${TACHO_WEB}
  COMMAND ${CMAKE_COMMAND} -E chdir ${TACHO_WEB} ${TACHO_NODE} node_modules/vite/bin/vite.js build --logLevel warn
  COMMAND ${CMAKE_COMMAND} -E chdir ${TACHO_WEB} ${TACHO_NODE} node_modules/vite/bin/vite.js build --mode view --logLevel warn
  COMMAND ${CMAKE_COMMAND} -E chdir ${TACHO_WEB} ${TACHO_NODE} node_modules/vite/bin/vite.js build --mode flame --logLevel warn
  COMMAND ${CMAKE_COMMAND} -E chdir ${TACHO_WEB} ${TACHO_NODE} node_modules/vite/bin/vite.js build --mode watch --logLevel warn
  DEPENDS ${web_sources} ${web_files} ${TACHO_WEB}/packages.stamp COMMENT "HTML pages" VERBATIM)
add_custom_target(web_page ALL DEPENDS ${TACHO_WEB}/dist/index.html ${TACHO_WEB}/dist/view.html ${TACHO_WEB}/dist/flame.html ${TACHO_WEB}/dist/watch.html)
