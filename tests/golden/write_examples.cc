#include "tests/golden/examples.h"

namespace mallocgame::golden {
namespace {

using enum Action;

// x, 4 bytes, is written by "make", which takes 6 ps instead of 10 with x in fast memory, and read
// by "use" (3 instead of 10), with 10 ps between them.
BufferId AddMakeAndUse(Example& e) {
  const BufferId x = e.program.Result("x", 4);
  e.program.Add({.name = "make", .writes = {x}, .cycles = {10, 6}});
  e.program.Add({.name = "pause", .cycles = {10}});
  e.program.Add({.name = "use", .reads = {x}, .cycles = {10, 3}});
  return x;
}

Example DropWrite() {
  Example e("drop_at_a_write",
            "Drop at a write makes the value in main memory; later reads may fetch it from there.");
  AddMakeAndUse(e);
  e.plays = {{"the prefetch can't begin before the value is made", {kDrop, kCopy}}};
  return e;
}

Example CopyWrite() {
  Example e("copy_at_a_write",
            "Copy at a write makes the value in fast memory and writes it back behind the write; "
            "it is resident until that is done.");
  AddMakeAndUse(e);
  e.plays = {
      {"the read finds it in main memory", {kCopy, kDrop}},
      {"the residence is kept for the read", {kCopy, kNoCopy}},
      {"the read has it fetched again", {kCopy, kCopy}},
  };
  return e;
}

Example NoCopyWrite() {
  Example e("no_copy_at_a_write",
            "NoCopy at a write makes the value in fast memory and nowhere else: it is resident "
            "until its last access, and all of them follow unasked.");
  const BufferId x = AddMakeAndUse(e);
  e.program.Add({.name = "last", .reads = {x}, .cycles = {10, 3}});
  e.plays = {{"the two reads are not asked", {kNoCopy}}};
  return e;
}

Example Output() {
  Example e("output",
            "An entry output must be in main memory at the end: it can't be written with NoCopy.");
  e.program.MarkOutput(AddMakeAndUse(e));
  e.plays = {
      {"made in fast memory and evicted", {kCopy, kNoCopy}},
      {"made in main memory", {kDrop, kDrop}},
  };
  return e;
}

Example EvictionCertain() {
  Example e("eviction_must_be_certain",
            "Copy at a write is legal only if the idle time that is certain behind it, whatever is "
            "decided later, holds the eviction.");
  const BufferId x = e.program.Result("x", 4), y = e.program.Result("y", 4),
                 p = e.program.Parameter("p", 4);
  e.program.Add({.name = "make x", .writes = {x}, .cycles = {10, 6}});
  e.program.Add({.name = "use p", .reads = {p}, .cycles = {8, 5}});
  e.program.Add({.name = "make y", .writes = {y}, .cycles = {10, 6}});
  e.program.Add({.name = "end", .cycles = {3}});
  e.program.MarkOutput(x);
  e.program.MarkOutput(y);
  e.plays = {
      {"4 ps are certain behind x, while p is read from main memory; 3 behind y are too few",
       {kCopy, kDrop, kDrop}},
  };
  return e;
}

Example EvictionWait() {
  Example e("wait_for_a_eviction",
            "A read from main memory waits for the value's eviction on its way: what is missing "
            "is a stall.");
  const BufferId x = e.program.Result("x", 4);
  e.program.Add({.name = "make", .writes = {x}, .cycles = {10, 6}});
  e.program.Add({.name = "short", .cycles = {1}});
  e.program.Add({.name = "use", .reads = {x}, .cycles = {10, 3}});
  e.program.Add({.name = "long", .cycles = {30}});
  e.plays = {
      {"Drop waits 3 ps for the eviction", {kCopy, kDrop}},
      {"Copy waits for it, and then for the prefetch", {kCopy, kCopy}},
      {"NoCopy needn't wait", {kCopy, kNoCopy}},
  };
  return e;
}

Example EvictionRelease() {
  Example e("bytes_come_back_after_a_eviction",
            "The bytes of a value are booked until its eviction is done for certain; if a later "
            "access finds it done before that, and doesn't keep the residence, they are free.");
  const BufferId x = e.program.Result("x", 4), p = e.program.Parameter("p", 2),
                 q = e.program.Constant("q", 4);
  e.program.Add({.name = "make", .writes = {x}, .cycles = {10, 6}});
  e.program.Add({.name = "use p", .reads = {p}, .cycles = {6, 3}});
  e.program.Add({.name = "both", .reads = {x, q}, .cycles = {16, 10, 10, 4}});
  e.hardware.fast_bytes = 4;
  e.plays = {
      {"of 4 ps behind make only 3 were certain: x is booked up to tick 3, and free from tick 2",
       {kCopy, kDrop, kDrop, kCopy}},
      {"x is kept: there is no place for q", {kCopy, kDrop, kNoCopy, kDrop}},
  };
  return e;
}

Example Update() {
  Example e("update",
            "An update is a read of the old value and a write of the new one: Copy fetches the old "
            "one and writes the new one back, NoCopy keeps the residence to the last access.");
  const BufferId p = e.program.Parameter("p", 4);
  e.program.Add({.name = "a", .cycles = {10}});
  e.program.Add({.name = "look", .reads = {p}, .cycles = {10, 3}});
  e.program.Add({.name = "step", .updates = {p}, .cycles = {20, 5}});
  e.program.Add({.name = "pause", .cycles = {10}});
  e.program.Add({.name = "use", .reads = {p}, .cycles = {10, 3}});
  e.plays = {
      {"the old value is fetched for the update alone", {kDrop, kCopy, kDrop}},
      {"the old value is the one that was fetched for the read", {kCopy, kCopy, kNoCopy}},
      {"pinned from the update on", {kCopy, kNoCopy}},
      {"nothing to pin behind a read from main memory", {kDrop, kDrop, kDrop}},
  };
  return e;
}

Example UpdateOfOutput() {
  Example e("update_of_an_output",
            "An update of an output can't be NoCopy: the new value must get back to main memory.");
  const BufferId p = e.program.Parameter("p", 4);
  e.program.MarkOutput(p);
  e.program.Add({.name = "a", .cycles = {10}});
  e.program.Add({.name = "step", .updates = {p}, .cycles = {20, 5}});
  e.program.Add({.name = "z", .cycles = {10}});
  e.plays = {{"fetched, updated and evicted", {kCopy}}, {"in main memory", {kDrop}}};
  return e;
}

Example Undefined() {
  Example e("undefined_buffer",
            "Storage without a value needs no prefetch: there is nothing to fetch before its first "
            "update.");
  const BufferId u = e.program.Undefined("u", 4);
  e.program.Add({.name = "step", .updates = {u}, .cycles = {20, 5}});
  e.program.Add({.name = "pause", .cycles = {10}});
  e.program.Add({.name = "use", .reads = {u}, .cycles = {10, 3}});
  e.plays = {
      {"Copy writes the new value back and fetches nothing", {kCopy, kDrop}},
      {"NoCopy keeps it to the last access", {kNoCopy}},
      {"Drop makes the value in main memory, where it can be fetched from", {kDrop, kCopy}},
  };
  return e;
}

Example PlainCopy() {
  Example e("plain_copy_replaced",
            "If the result of a plain copy goes to fast memory and its operand is in main memory, "
            "a prefetch of the operand takes the instruction's place, which then takes no time.");
  const BufferId p = e.program.Constant("p", 4), q = e.program.Result("q", 4);
  e.program.Add({.name = "a", .cycles = {10}});
  e.program.Add(
      {.name = "copy", .reads = {p}, .writes = {q}, .cycles = {16, 12, 12, 8}, .plain_copy = true});
  e.program.Add({.name = "pause", .cycles = {10}});
  e.program.Add({.name = "use", .reads = {q}, .cycles = {10, 3}});
  e.plays = {
      {"NoCopy at the write: the prefetch is hidden while a runs", {kDrop, kNoCopy}},
      {"Copy at the write: the same, and an eviction", {kDrop, kCopy, kNoCopy}},
      {"the operand is in fast memory: the instruction runs", {kCopy, kNoCopy}},
      {"both in main memory: the instruction runs", {kDrop, kDrop, kDrop}},
  };
  return e;
}

Example PlainCopyAtUpdate() {
  Example e("plain_copy_replaced_at_the_update",
            "A plain copy whose result was left in main memory is still replaced if its first use "
            "is an update that has it fetched: the operand's bytes are fetched instead.");
  const BufferId p = e.program.Constant("p", 4), q = e.program.Result("q", 4);
  e.program.MarkOutput(q);
  e.program.Add(
      {.name = "copy", .reads = {p}, .writes = {q}, .cycles = {16, 12, 12, 8}, .plain_copy = true});
  e.program.Add({.name = "pause", .cycles = {10}});
  e.program.Add({.name = "step", .updates = {q}, .cycles = {10, 3}});
  e.program.Add({.name = "after", .cycles = {10}});
  e.plays = {
      {"the time of the copy is saved at the update", {kDrop, kDrop, kCopy}},
      {"nothing is replaced if the operand is in fast memory", {kCopy, kDrop, kCopy}},
  };
  return e;
}

}  // namespace

std::vector<Example> WriteExamples() {
  return {DropWrite(),       CopyWrite(),    NoCopyWrite(),     Output(),
          EvictionCertain(), EvictionWait(), EvictionRelease(), Update(),
          UpdateOfOutput(),  Undefined(),    PlainCopy(),       PlainCopyAtUpdate()};
}

}  // namespace mallocgame::golden
