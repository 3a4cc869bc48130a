# thresher_package_folders(VARIABLE)
#
# The folders of Python packages in which headers are looked for: those of the Python that builds (under pip's build isolation
# too, which hides them from `import`), and those of the environments that are active.
function(thresher_package_folders variable)
  set(python python3)
  if(Python3_EXECUTABLE)
    set(python ${Python3_EXECUTABLE})
  endif()
  execute_process(COMMAND ${python} -c "import sys, sysconfig
own = [sysconfig.get_path('purelib'), sysconfig.get_path('platlib')]
print(';'.join(dict.fromkeys(p for p in own + sys.path if p.endswith('-packages'))))"
    OUTPUT_VARIABLE folders OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(cache $ENV{XDG_CACHE_HOME})
  if(NOT cache)
    set(cache $ENV{HOME}/.cache)
  endif()
  file(GLOB fetched ${cache}/thresher/python/cuda-*/complete)  # what ./run fetched once
  list(TRANSFORM fetched REPLACE "/complete$" "")
  foreach(prefix $ENV{VIRTUAL_ENV} $ENV{CONDA_PREFIX} ${fetched})
    file(GLOB found ${prefix}/lib/python3*/site-packages)
    list(APPEND folders ${found})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  set(${variable} ${folders} PARENT_SCOPE)
endfunction()

# thresher_forget_missing(VARIABLE FILE): looks again where the folder that was found in an earlier run is gone.
macro(thresher_forget_missing variable file)
  if(${variable} AND NOT EXISTS "${${variable}}/${file}")
    unset(${variable} CACHE)
  endif()
endmacro()

# thresher_find_in_packages(VARIABLE FILE PATTERN...): the cache variable VARIABLE is the first folder PATTERN below a folder of packages
# that holds FILE.
function(thresher_find_in_packages variable file)
  thresher_forget_missing(${variable} ${file})
  thresher_package_folders(folders)
  set(places "")
  foreach(folder IN LISTS folders)
    foreach(pattern IN LISTS ARGN)
      file(GLOB found ${folder}/${pattern})
      list(APPEND places ${found})
    endforeach()
  endforeach()
  find_path(${variable} ${file} HINTS ${places} NO_DEFAULT_PATH)
endfunction()
