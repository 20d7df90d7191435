// Sizes of tiled arrays: every example of XLA reference 6.4, and absurd shapes that are refused.
#include "mallocgame/hlo/module/shape_size.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ParseShape;

constexpr int64_t kLimit = int64_t{1} << 40;

int64_t Bytes(const std::string& shape) {
  const absl::StatusOr<int64_t> bytes = TiledBytes(ParseShape(shape), kLimit);
  REQUIRE(bytes.ok());
  return *bytes;
}

TEST_CASE("tiled sizes are those of the TPU compiler") {
  CHECK(Bytes("bf16[512,1024]{1,0:T(8,128)(2,1)}") == 1'048'576);
  CHECK(Bytes("bf16[500,1000]{1,0:T(8,128)(2,1)}") == 1'032'192);
  CHECK(Bytes("bf16[7,5,130]{2,1,0:T(8,128)(2,1)}") == 28'672);
  CHECK(Bytes("f32[3]{0:T(128)}") == 512);
  CHECK(Bytes("s32[]{:T(128)}") == 512);
  CHECK(Bytes("f32[512,1024]{0,1:T(8,128)}") == 2'097'152);
  CHECK(Bytes("bf16[500,1000]{0,1:T(8,128)(2,1)}") == 1'024'000);
  CHECK(Bytes("bf16[7,5,130]{2,0,1:T(8,128)(2,1)}") == 20'480);
  CHECK(Bytes("f32[513,1025]{1,0:T(8,128)}") == 2'396'160);
  CHECK(Bytes("s8[3,3,17]{2,1,0:T(4,128)(4,1)}") == 1'536);
  CHECK(Bytes("bf16[5]{0:T(256)(128)(2,1)}") == 512);
  CHECK(Bytes("f32[1000,3]{0,1:T(4,128)}") == 16'384);
  CHECK(Bytes("bf16[2,1000]{1,0:T(2,128)(2,1)}") == 4'096);
}

TEST_CASE("sizes without tiles, of zero elements, of packed elements") {
  CHECK(Bytes("f32[3,5]") == 60);
  CHECK(Bytes("f32[3,0]{1,0:T(8,128)}") == 0);
  CHECK(Bytes("token[]") == 0);
  CHECK(Bytes("s4[10]") == 10);
  ShapeProto packed = ParseShape("s4[11]");
  packed.mutable_layout()->set_element_size_in_bits(4);
  CHECK(*TiledBytes(packed, kLimit) == 6);
  ShapeProto tail = ParseShape("f32[5]");
  tail.mutable_layout()->set_tail_padding_alignment_in_elements(8);
  CHECK(*TiledBytes(tail, kLimit) == 32);
  CHECK(Bytes("f32[16,128]{1,0:T(8,128)S(1)SC(0:8)}") == 16 * 128 * 4);  // on both cores
}

TEST_CASE("the extent of a dimension in a tile") {
  const ShapeProto shape = ParseShape("bf16[4,96,256]{1,2,0:T(8,128)(2,1)}");
  CHECK(TileExtent(shape, 0) == 1);
  CHECK(TileExtent(shape, 1) == 128);
  CHECK(TileExtent(shape, 2) == 8);
}

int64_t Unit(const std::string& shape) { return OuterUnitBytes(ParseShape(shape), Bytes(shape)); }

// What XLA:TPU cut: the slices of its own prefetches are multiples of these.
TEST_CASE("arrays are cut at rows of tiles of the outermost dimension") {
  CHECK(Unit("bf16[10000,512]{1,0:T(8,128)(2,1)}") == 8 * 512 * 2);
  CHECK(Unit("f32[2048,1000]{0,1:T(8,128)}") == 8 * 2048 * 4);
  CHECK(Unit("bf16[3,3,256,256]{3,2,1,0:T(8,128)(2,1)}") == 3 * 256 * 256 * 2);
  CHECK(Unit("bf16[64,14,14,1024]{3,0,2,1:T(8,128)(2,1)}") == 64 * 14 * 1024 * 2);
  // The outermost dimension of a matrix is one row of tiles, so the other is cut.
  CHECK(Unit("f32[65536,3]{0,1:T(4,128)}") == 128 * 4 * 4);
  // One dimension of size 1 can't be cut.
  CHECK(Unit("bf16[1,1,512,2048]{3,2,1,0:T(8,128)(2,1)}") == 2 * 512 * 2048);
}

TEST_CASE("a dimension reaches as far as its tiles") {
  const auto extents = [](const std::string& text) {
    const ShapeProto shape = ParseShape(text);
    std::vector<int64_t> padded;
    for (int d = 0; d < shape.dimensions_size(); ++d) padded.push_back(PaddedExtent(shape, d));
    return padded;
  };
  using Extents = std::vector<int64_t>;
  CHECK(extents("f32[5,200]{1,0:T(8,128)}") == Extents{8, 256});
  CHECK(extents("f32[5,200]{0,1:T(8,128)}") == Extents{128, 200});
  CHECK(extents("bf16[8,16,100]{2,0,1:T(8,128)(2,1)}") == Extents{8, 16, 128});
  CHECK(extents("s32[16]{0:T(128)}") == Extents{128});
  CHECK(extents("s32[16,3]") == Extents{16, 3});
}

TEST_CASE("unpadded sizes ignore tiles and add up tuples") {
  CHECK(*UnpaddedBytes(ParseShape("bf16[5]{0:T(256)(128)(2,1)}"), kLimit) == 10);
  CHECK(*UnpaddedBytes(ParseShape("(f32[3]{0:T(128)}, (s8[7], token[]))"), kLimit) == 19);
  CHECK(*UnpaddedBytes(ParseShape("(b(f32[3]), b(s8[7]))"), kLimit) == 19);
  CHECK(ArrayOf(ParseShape("b(f32[3])")).element_type() == F32);
  CHECK(ArrayOf(ParseShape("s8[7]")).element_type() == S8);
}

TEST_CASE("the limit is of bytes, whatever the type") {
  constexpr int64_t kSmall = 1024;
  const auto refusals = [](const std::string& type, int64_t elements) {
    ShapeProto shape = ParseShape(absl::StrCat(type, "[", elements, "]"));
    if (type == "s4") shape.mutable_layout()->set_element_size_in_bits(4);
    const absl::Status tiled = TiledBytes(shape, kSmall).status();
    if (type != "s4") CHECK(UnpaddedBytes(shape, kSmall).status() == tiled);
    return std::string(tiled.message());
  };
  CHECK(refusals("s8", 1024) == "");
  CHECK(refusals("s8", 1025) == "an array of more than 1024 bytes");
  CHECK(refusals("f32", 256) == "");
  CHECK(refusals("f32", 257) == "an array of more than 1024 bytes");
  CHECK(refusals("s4", 2048) == "");
  CHECK(refusals("s4", 2049) == "an array of more than 1024 bytes");
  // Each array of a tuple may have as much.
  CHECK(*UnpaddedBytes(ParseShape("(s8[1000], s8[1000])"), kSmall) == 2000);
  CHECK(UnpaddedBytes(ParseShape("(s8[1000], s8[2000])"), kSmall).status().message() ==
        "an array of more than 1024 bytes");
}

TEST_CASE("absurd shapes are refused") {
  const auto refused = [](const ShapeProto& shape) {
    return TiledBytes(shape, kLimit).status().code() == absl::StatusCode::kInvalidArgument;
  };
  CHECK(refused(ParseShape("f32[-1]")));
  CHECK(TiledBytes(ParseShape("f32[-9223372036854775808,784]"), kLimit).status().message() ==
        "an unbounded dimension, ? in text; its size must be known");
  CHECK(refused(ParseShape("f32[1099511627776,1099511627776]")));
  CHECK(refused(ParseShape("f32[4611686018427387904,4]{1,0:T(8,128)}")));
  CHECK(refused(ParseShape("f32[2,3]{0,0:T(8,128)}")));
  CHECK(refused(ParseShape("f32[2,3]{1:T(8,128)}")));
  CHECK(refused(ParseShape("f32[2,3]{2,0:T(8,128)}")));
  CHECK(refused(ParseShape("f32[2]{0:T(0)}")));
  CHECK(refused(ShapeProto()));
  ShapeProto bits = ParseShape("f32[2]");
  bits.mutable_layout()->set_element_size_in_bits(-8);
  CHECK(refused(bits));
}

}  // namespace
}  // namespace mallocgame::hlo
