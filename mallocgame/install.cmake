# What `cmake --install DIR --component development` puts in place: public headers, the static
# libraries, and mallocgameConfig.cmake, which offers them to find_package(mallocgame) as
# mallocgame::core, mallocgame::io and mallocgame::mcts (agents/mcts adds itself).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/mallocgame)

# mallocgame_component(name): library mallocgame_NAME becomes the component NAME.
function(mallocgame_component component)
  add_library(mallocgame::${component} ALIAS mallocgame_${component})
  set_target_properties(mallocgame_${component} PROPERTIES EXPORT_NAME ${component})
  install(TARGETS mallocgame_${component} EXPORT mallocgame_${component}
          ARCHIVE COMPONENT development FILE_SET HEADERS COMPONENT development)
  install(EXPORT mallocgame_${component} NAMESPACE mallocgame:: FILE ${component}.cmake
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mallocgame COMPONENT development)
endfunction()

mallocgame_component(core)
mallocgame_component(io)

set(config ${CMAKE_CURRENT_BINARY_DIR}/mallocgameConfig.cmake)
set(config_version ${CMAKE_CURRENT_BINARY_DIR}/mallocgameConfigVersion.cmake)
configure_package_config_file(mallocgameConfig.cmake.in ${config}
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${config_version}
                                 VERSION ${PROJECT_VERSION} COMPATIBILITY SameMajorVersion)
install(FILES ${config} ${config_version}
        DESTINATION ${package_dir} COMPONENT development)
