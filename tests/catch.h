// The only line that names Catch2's header: versions 2 and 3 differ there.
#include <catch2/catch.hpp>
