# Run by cpack on the staged files: moves the files that lie elsewhere in a Debian package than in the relocatable
# archive.
set(usr ${CPACK_TEMPORARY_DIRECTORY}/usr)
# The Python package, importable without PYTHONPATH.
file(MAKE_DIRECTORY ${usr}/lib/python3/dist-packages)
file(RENAME ${usr}/share/tacho/python/tacho ${usr}/lib/python3/dist-packages/tacho)
file(REMOVE_RECURSE ${usr}/share/tacho/python)
file(RENAME ${usr}/share/sample ${usr}/share/doc/tacho/examples)
file(REMOVE_RECURSE ${usr}/share/modulefiles)
file(RENAME ${usr}/share/doc/tacho/LICENSE ${usr}/share/doc/tacho/copyright)
# A path of the staging folder must not be in the .pc file.
file(READ ${usr}/share/pkgconfig/tacho.pc text)
string(REGEX REPLACE "prefix=[^\n]*" "prefix=/usr" text "${text}")
file(WRITE ${usr}/share/pkgconfig/tacho.pc "${text}")
file(GLOB pages ${usr}/share/man/man1/*.1)
foreach(page ${pages})
  execute_process(COMMAND gzip -9n ${page} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
