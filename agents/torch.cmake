# Torch, for the agents that learn: the target mallocgame_torch, if the Python that is used (Python_EXECUTABLE) has a Torch
# wheel with a CMake package, or Torch_DIR names another. MALLOCGAME_TORCH: AUTO takes it where it is, ON insists, OFF leaves
# it out.
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
    execute_process(COMMAND ${Python_EXECUTABLE} -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
                    OUTPUT_VARIABLE torch_folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
# Torch's own configuration has much to say; it matters where it fails.
set(CMAKE_MESSAGE_LOG_LEVEL_BEFORE ${CMAKE_MESSAGE_LOG_LEVEL})
set(CMAKE_MESSAGE_LOG_LEVEL ERROR)
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)  # the folders that link our libraries are others than this one
if(Torch_DIR OR torch_folder)
  find_package(Torch 2.13 CONFIG QUIET PATHS ${torch_folder}/share/cmake NO_DEFAULT_PATH)
endif()
set(CMAKE_MESSAGE_LOG_LEVEL ${CMAKE_MESSAGE_LOG_LEVEL_BEFORE})

if(NOT Torch_FOUND)
  set(reason "no Torch 2.13 for ${Python_EXECUTABLE} (pip install torch==2.13.0)")
  if(MALLOCGAME_TORCH STREQUAL "ON")
    message(FATAL_ERROR "MALLOCGAME_TORCH=ON, but there is ${reason}")
  endif()
  message(STATUS "Agents that learn are left out: ${reason}")
  return()
endif()
if(TORCH_CXX_FLAGS MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
  message(FATAL_ERROR "Torch in ${Torch_DIR} was built with the old C++ ABI, this library with the new one; MALLOCGAME_TORCH=OFF leaves the agents out")
endif()
set(MALLOCGAME_TORCH_VERSION ${Torch_VERSION} CACHE INTERNAL "Version of the Torch that is used")
message(STATUS "Agents that learn: Torch ${Torch_VERSION} in ${Torch_DIR}")

# Headers as system headers: our warnings don't apply to them. Only sources of agents/muzero and agents/egrl may see them,
# so libraries link this one privately.
add_library(mallocgame_torch INTERFACE)
target_include_directories(mallocgame_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(mallocgame_torch INTERFACE ${TORCH_LIBRARIES})
