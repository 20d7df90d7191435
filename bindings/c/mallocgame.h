/* mallocGame for C, and for languages that call C: the library mallocgame_c, which needs no other
 * library of ours and throws nothing.
 *
 * Handles. Programs, games, observers, positions and batches of environments are known by numbers.
 * 0 is none. A handle that was never given, was freed, or is of another kind is an error; so is one
 * of a position or of environments that another thread is using. Programs, games and observers
 * never change, and threads share them.
 *
 * Errors. Each function returns MG_OK or another mg_code, and then changes nothing that it does not
 * name. mg_last_error() has the sentence.
 *
 * Bytes and text that a function gives go to `out`, which has `room` bytes, or nowhere if they have
 * no room; `*size` is their number without the 0 that ends a text. So a first call with room 0 asks
 * how many there are, which is no error.
 *
 * Numbers are picoseconds and bytes. An action is a number from 0 on.
 *
 * Other copies. It is linked with libprotobuf, which ends a process that has the same messages
 * twice. So no process can have it beside mallocgame::io or a mallocgame for Python that was built
 * from source; that of a wheel has a libprotobuf of its own.
 *
 * Versions. Within a major version functions are added, and none changes or goes; the members of
 * structs stay. */
#ifndef MALLOCGAME_C_H_
#define MALLOCGAME_C_H_

/* NOLINTBEGIN: C, with the names of C */
#include <stddef.h>
#include <stdint.h>

#define MG_VERSION_MAJOR 1
#define MG_VERSION_MINOR 0

#if defined(__GNUC__)
#define MG_API __attribute__((visibility("default")))
#else
#define MG_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t mg_handle;

/* The numbers of google.rpc.Code. */
typedef enum mg_code {
  MG_OK = 0,
  MG_INVALID_ARGUMENT = 3,    /* a bad handle, a null pointer, an illegal action ... */
  MG_NOT_FOUND = 5,           /* there is no such file or preset */
  MG_PERMISSION_DENIED = 7,   /* the file may not be read */
  MG_RESOURCE_EXHAUSTED = 8,  /* out of memory */
  MG_FAILED_PRECONDITION = 9, /* the game is over, or is not */
  MG_INTERNAL = 13,           /* our bug */
  MG_UNAVAILABLE = 14,        /* another thread is using it */
  MG_DATA_LOSS = 15           /* a logged game does not replay */
} mg_code;

/* The version of the library: 1000 * major + minor. */
MG_API uint32_t mg_version(void);
/* The sentence of this thread's last error; never null, valid until its next one. */
MG_API const char* mg_last_error(void);
/* Gives up any handle. What was made of it lives on. */
MG_API int mg_free(mg_handle handle);

/* --- Programs: what a program file (.mgp) has. */

MG_API int mg_program_load(const char* path, mg_handle* program);
/* The same of the bytes of a file. */
MG_API int mg_program_parse(const void* bytes, size_t size, mg_handle* program);
MG_API int mg_program_name(mg_handle program, char* out, size_t room, size_t* size);

/* --- Games. */

typedef struct mg_option {
  const char* name; /* "candidates" ... */
  double value;     /* of a yes or no: 1 or 0. "forbidden" may be given several times. */
} mg_option;

typedef struct mg_game_info {
  int64_t all_main_ps;   /* the latency of the plan with everything in main memory */
  int32_t num_actions;   /* actions are 0 ... num_actions - 1 */
  int32_t max_decisions; /* an upper limit of the length of a game */
} mg_game_info;

/* kind: "time", "priority" or "schedule". hardware: JSON, the name of a preset ("tpu_v5e"), or null
 * for the program's own. Options that are not given have their usual values; without
 * "min_buffer_bytes" the game asks about small buffers where they count. */
MG_API int mg_game_create(mg_handle program, const char* kind, const char* hardware,
                          const mg_option* options, size_t num_options, mg_handle* game);
MG_API int mg_game_info_of(mg_handle game, mg_game_info* info);
/* What an action is called. */
MG_API int mg_game_action_name(mg_handle game, int32_t action, char* out, size_t room,
                               size_t* size);

/* --- Observations: float32 numbers in [-1, 1], in named parts. */

typedef struct mg_observation {
  int32_t neighbours, ticks_back, ticks_ahead, ticks_per_column, address_cells;
} mg_observation;
static const mg_observation MG_OBSERVATION_FULL = {4, 8, 8, 4, 32};
static const mg_observation MG_OBSERVATION_COMPACT = {0, 0, 0, 1, 0};

typedef struct mg_part {
  char name[24];
  int32_t offset; /* where its first number stands in an observation */
  int32_t rank;   /* the number of axes */
  int32_t shape[4];
} mg_part;

/* observation: null is MG_OBSERVATION_FULL. */
MG_API int mg_observer_create(mg_handle game, const mg_observation* observation,
                              mg_handle* observer);
/* The numbers of an observation, and the parts it has. */
MG_API int mg_observer_size(mg_handle observer, size_t* numbers, size_t* parts);
MG_API int mg_observer_part(mg_handle observer, size_t index, mg_part* part);
/* `out` has `room` floats, at least as many as an observation has. */
MG_API int mg_observer_write(mg_handle observer, mg_handle position, float* out, size_t room);

/* --- Positions. */

typedef struct mg_position_info {
  int64_t latency_ps; /* with everything undecided in main memory */
  int32_t num_decisions;
  int32_t terminal; /* 1 at the end, else 0 */
} mg_position_info;

/* The start of a game. */
MG_API int mg_position_create(mg_handle game, mg_handle* position);
MG_API int mg_position_clone(mg_handle position, mg_handle* clone);
MG_API int mg_position_info_of(mg_handle position, mg_position_info* info);
/* 1 for each legal action, else 0, all 0 at the end. `mask` has `room` numbers. */
MG_API int mg_position_legal(mg_handle position, int8_t* mask, size_t room);
/* Carries out an action. saved_ps (may be null): the picoseconds that it saves, or the negative of
 * those that it costs. */
MG_API int mg_position_apply(mg_handle position, int32_t action, int64_t* saved_ps);
/* Takes back the last action. */
MG_API int mg_position_undo(mg_handle position);
/* The actions so far, a byte each. */
MG_API int mg_position_actions(mg_handle position, uint8_t* out, size_t room, size_t* size);
/* A few lines for people. */
MG_API int mg_position_text(mg_handle position, char* out, size_t room, size_t* size);
/* The plan of the decisions so far as JSON, as plan files have it. That of an end is valid. */
MG_API int mg_position_plan(mg_handle position, char* out, size_t room, size_t* size);

/* --- Logged games (.mgr). */

/* The log of a game that is over. player: who played, UTF-8. seed: the player's. */
MG_API int mg_position_log(mg_handle position, const char* player, uint64_t seed, void* out,
                           size_t room, size_t* size);
/* Plays a log again. MG_DATA_LOSS: a reward, the plan or its latency comes out otherwise. position
 * (may be null): the end. */
MG_API int mg_log_replay(mg_handle program, const void* log, size_t size, mg_handle* position);

/* --- Environments: many games that are stepped together. */

typedef enum mg_autoreset {
  MG_NEXT_STEP = 0, /* the step after an end ignores its action and begins the next episode */
  MG_SAME_STEP = 1, /* the step that ends an episode also begins the next one */
  MG_DISABLED = 2   /* the caller resets */
} mg_autoreset;

typedef struct mg_envs_options {
  int32_t autoreset; /* mg_autoreset */
  int32_t fixed;     /* 1: environment i plays game i modulo their number; 0: each episode draws */
  int32_t threads;   /* 0 chooses */
  mg_observation observation;
} mg_envs_options;

typedef struct mg_envs_info {
  int32_t count, num_actions, observation_size, threads;
} mg_envs_info;

/* Where a call writes: each member has a row for each environment. */
typedef struct mg_buffers {
  float* observations;       /* [count, observation_size] */
  int8_t* masks;             /* [count, num_actions], 1 where an action is legal */
  double* rewards;           /* [count]: the saved share of the all-main latency; not of a reset */
  uint8_t* terminated;       /* [count]: 1 where an episode ended; not of a reset */
  int64_t* latency_ps;       /* [count] */
  float* final_observations; /* of MG_SAME_STEP, where an episode ended: those of its end */
  int8_t* final_masks;
} mg_buffers;

/* The games have as many actions each. */
MG_API int mg_envs_create(const mg_handle* games, size_t num_games, int32_t count,
                          const mg_envs_options* options, mg_handle* envs);
MG_API int mg_envs_info_of(mg_handle envs, mg_envs_info* info);
/* Begins an episode everywhere, or where `which` (may be null) is not 0. seeds (may be null): one
 * for each environment; without them each goes on with its own. */
MG_API int mg_envs_reset(mg_handle envs, const uint64_t* seeds, const uint8_t* which,
                         const mg_buffers* out);
/* One action for each environment. After an error none has moved. */
MG_API int mg_envs_step(mg_handle envs, const int64_t* actions, const mg_buffers* out);
/* A copy of the position of one environment. */
MG_API int mg_envs_position(mg_handle envs, int32_t index, mg_handle* position);

#ifdef __cplusplus
}
#endif
/* NOLINTEND */

#endif /* MALLOCGAME_C_H_ */
