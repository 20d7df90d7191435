# What `cmake --install DIR --component development` puts in place: public headers, the static
# libraries, and mallocgameConfig.cmake, which offers them to find_package(mallocgame) as
# mallocgame::core, mallocgame::io, mallocgame::pjrt and mallocgame::c (the last adds itself, in
# bindings/c).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/mallocgame)

# mallocgame_component(name): library mallocgame_NAME becomes the component NAME.
function(mallocgame_component component)
  add_library(mallocgame::${component} ALIAS mallocgame_${component})
  set_target_properties(mallocgame_${component} PROPERTIES EXPORT_NAME ${component})
  install(TARGETS mallocgame_${component} EXPORT mallocgame_${component}
          ARCHIVE COMPONENT development LIBRARY COMPONENT development
          FILE_SET HEADERS COMPONENT development)
  install(EXPORT mallocgame_${component} NAMESPACE mallocgame:: FILE ${component}.cmake
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/mallocgame COMPONENT development)
endfunction()

mallocgame_component(core)
mallocgame_component(io)
mallocgame_component(pjrt)

set(config ${CMAKE_CURRENT_BINARY_DIR}/mallocgameConfig.cmake)
set(config_version ${CMAKE_CURRENT_BINARY_DIR}/mallocgameConfigVersion.cmake)
configure_package_config_file(mallocgameConfig.cmake.in ${config}
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${config_version}
                                 VERSION ${PROJECT_VERSION} COMPATIBILITY SameMajorVersion)
install(FILES ${config} ${config_version}
        DESTINATION ${package_dir} COMPONENT development)

# `cpack -G DEB` in the build folder makes the Debian package of the same. Inlined code of Abseil
# and generated code of Protobuf fit one version only, that of the system that built the package.
if(PROJECT_IS_TOP_LEVEL)
  math(EXPR next_absl "${absl_VERSION} + 1")
  string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" protobuf_series "${Protobuf_VERSION}")
  math(EXPR next_protobuf "${CMAKE_MATCH_2} + 1")
  set(next_protobuf ${CMAKE_MATCH_1}.${next_protobuf})
  string(JOIN ", " CPACK_DEBIAN_PACKAGE_DEPENDS
    "libabsl-dev (>= ${absl_VERSION})" "libabsl-dev (<< ${next_absl})"
    "libprotobuf-dev (>= ${Protobuf_VERSION})" "libprotobuf-dev (<< ${next_protobuf})"
    zlib1g-dev libzstd-dev)
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libmallocgame-dev)
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_PACKAGE_MAINTAINER "the mallocGame authors")
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_COMPONENTS_ALL development)
  set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "C++ libraries: static, headers and CMake config")
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/libmallocgame-dev
          RENAME copyright COMPONENT development)
  # Its headers are compiled into the libraries; the other licences come with what is depended on.
  install(FILES /usr/share/doc/nlohmann-json3-dev/copyright OPTIONAL COMPONENT development
          DESTINATION share/doc/libmallocgame-dev RENAME copyright.nlohmann-json3)
  include(CPack)
endif()
