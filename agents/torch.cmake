# Torch, for the agents that learn: the target mallocgame_torch, if the Python that is used
# (Python_EXECUTABLE) has a Torch wheel, or Torch_DIR names the folder of another's
# TorchConfig.cmake. MALLOCGAME_TORCH: AUTO takes it where it is, ON insists, OFF leaves it out.
#
# Torch's libraries are named here, not taken from its CMake package: that of a wheel with CUDA
# refuses machines without the CUDA toolkit, of which nothing here needs a thing.
set(MALLOCGAME_TORCH AUTO CACHE STRING "Build the agents that need Torch: AUTO, ON or OFF")
set_property(CACHE MALLOCGAME_TORCH PROPERTY STRINGS AUTO ON OFF)
if(NOT MALLOCGAME_TORCH MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "MALLOCGAME_TORCH: found '${MALLOCGAME_TORCH}', allowed: AUTO, ON, OFF")
endif()
if(MALLOCGAME_TORCH STREQUAL "OFF")
  return()
endif()

if(NOT Torch_DIR)
  find_package(Python 3.11 COMPONENTS Interpreter QUIET)
  if(Python_EXECUTABLE)
    # Where Torch lies, without the second that importing it takes.
    string(CONCAT find_torch "import importlib.util as u\n"
           "print(u.find_spec('torch').submodule_search_locations[0])")
    execute_process(COMMAND ${Python_EXECUTABLE} -c "${find_torch}"
                    OUTPUT_VARIABLE torch_folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
if(Torch_DIR)
  get_filename_component(torch_folder ${Torch_DIR}/../../.. ABSOLUTE)
endif()

set(torch_found "none")
if(EXISTS "${torch_folder}/share/cmake/Torch/TorchConfigVersion.cmake")
  include(${torch_folder}/share/cmake/Torch/TorchConfigVersion.cmake)
  set(torch_found ${PACKAGE_VERSION})
endif()
# pyproject.toml says which version is asked for, and pip installs it from there. Patch releases are
# interchangeable.
file(STRINGS ${PROJECT_SOURCE_DIR}/pyproject.toml torch_lines REGEX "^agents = ")
string(REGEX MATCH "torch==([0-9]+\\.[0-9]+)(\\.[0-9]+)?" torch_asked "${torch_lines}")
set(torch_series ${CMAKE_MATCH_1})
if(NOT torch_found MATCHES "^${torch_series}\\.")
  set(reason "asked for Torch ${torch_series} (pip install ${torch_asked})")
  string(APPEND reason ", found ${torch_found} for ${Python_EXECUTABLE}")
  if(MALLOCGAME_TORCH STREQUAL "ON")
    message(FATAL_ERROR "MALLOCGAME_TORCH=ON: ${reason}")
  endif()
  message(STATUS "Agents that learn are left out: ${reason}")
  return()
endif()
set(MALLOCGAME_TORCH_VERSION ${torch_found} CACHE INTERNAL "Version of the Torch that is used")
message(STATUS "Agents that learn: Torch ${torch_found} in ${torch_folder}")

# Headers as system headers: our warnings don't apply to them. Only sources of agents/training,
# agents/muzero and agents/egrl may see them, so libraries link this one privately. libtorch itself
# has no symbol of its own, but brings CUDA where it has it.
add_library(mallocgame_torch INTERFACE)
target_include_directories(mallocgame_torch SYSTEM INTERFACE
  ${torch_folder}/include ${torch_folder}/include/torch/csrc/api/include)
target_link_libraries(mallocgame_torch INTERFACE
  -Wl,--push-state,--no-as-needed ${torch_folder}/lib/libtorch.so -Wl,--pop-state
  ${torch_folder}/lib/libtorch_cpu.so ${torch_folder}/lib/libc10.so)

# To read Torch's header takes most of the time that the sources take which include it. They are
# named here; for the others the precompiled header would be a burden.
function(mallocgame_includes_torch target)
  get_target_property(others ${target} SOURCES)
  list(REMOVE_ITEM others ${ARGN})
  set_source_files_properties(${others} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endfunction()
