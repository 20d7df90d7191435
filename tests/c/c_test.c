/* The C interface from C: c_test PROGRAM.mgp [STEPS]. Games of each kind at random, with undo,
 * observations, logs and plans; environments; and every wrong use that can be made. */
#include "mallocgame.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition, \
              mg_last_error());                                                      \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)
#define OK(call) CHECK((call) == MG_OK)
/* The call is refused with a code and a sentence that has these words. */
#define REFUSED(call, code, words)                 \
  do {                                             \
    CHECK((call) == (code));                       \
    CHECK(strstr(mg_last_error(), words) != NULL); \
  } while (0)

enum { MOST_ACTIONS = 256 };

static uint64_t chance = 1;
static uint32_t draw(uint32_t below) {
  chance = chance * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((chance >> 33) % below);
}

static int32_t random_action(const int8_t* mask, int32_t count) {
  int32_t legal[MOST_ACTIONS], n = 0;
  for (int32_t a = 0; a < count; ++a)
    if (mask[a]) legal[n++] = a;
  return n == 0 ? -1 : legal[draw((uint32_t)n)];
}

static char* text_of(int (*give)(mg_handle, char*, size_t, size_t*), mg_handle handle) {
  size_t size = 0;
  OK(give(handle, NULL, 0, &size));
  char* text = malloc(size + 1);
  OK(give(handle, text, size + 1, &size));
  CHECK(strlen(text) == size);
  return text;
}

/* Plays games at random for so many steps. */
static void play(mg_handle program, const char* kind, const mg_option* options, size_t num_options,
                 long steps) {
  mg_handle game, observer, position;
  OK(mg_game_create(program, kind, NULL, options, num_options, &game));
  mg_game_info info;
  OK(mg_game_info_of(game, &info));
  CHECK(info.num_actions > 0 && info.num_actions <= MOST_ACTIONS && info.all_main_ps > 0);
  OK(mg_observer_create(game, &MG_OBSERVATION_COMPACT, &observer));
  size_t numbers, parts, offset = 0;
  OK(mg_observer_size(observer, &numbers, &parts));
  for (size_t i = 0; i < parts; ++i) {
    mg_part part;
    OK(mg_observer_part(observer, i, &part));
    size_t count = 1;
    for (int32_t axis = 0; axis < part.rank; ++axis) count *= (size_t)part.shape[axis];
    CHECK((size_t)part.offset == offset && part.name[0] != 0);
    offset += count;
  }
  CHECK(offset == numbers);
  float* observation = malloc(numbers * sizeof(float));
  int8_t mask[MOST_ACTIONS];
  long games = 0;
  OK(mg_position_create(game, &position));
  for (long step = 0; step < steps; ++step) {
    mg_position_info before, after;
    OK(mg_position_info_of(position, &before));
    OK(mg_position_legal(position, mask, sizeof mask));
    OK(mg_observer_write(observer, position, observation, numbers));
    for (size_t i = 0; i < numbers; ++i) CHECK(fabsf(observation[i]) <= 1);
    const int32_t action = random_action(mask, info.num_actions);
    if (before.terminal) {
      CHECK(action == -1);
      REFUSED(mg_position_apply(position, 0, NULL), MG_FAILED_PRECONDITION, "over");
      size_t size;
      OK(mg_position_log(position, "random", 7, NULL, 0, &size));
      uint8_t* log = malloc(size);
      OK(mg_position_log(position, "random", 7, log, size, &size));
      mg_handle again;
      OK(mg_log_replay(program, log, size, &again));
      char *plan = text_of(mg_position_plan, position), *same = text_of(mg_position_plan, again);
      CHECK(strcmp(plan, same) == 0 && strstr(plan, "mallocgame plan") != NULL);
      free(plan), free(same), free(log);
      OK(mg_free(again));
      OK(mg_free(position));
      OK(mg_position_create(game, &position));
      ++games;
      continue;
    }
    int64_t saved_ps;
    OK(mg_position_apply(position, action, &saved_ps));
    OK(mg_position_info_of(position, &after));
    CHECK(before.latency_ps - saved_ps == after.latency_ps);
    if (draw(8) == 0) { /* there and back, and a clone goes the same way */
      mg_handle clone;
      OK(mg_position_undo(position));
      OK(mg_position_clone(position, &clone));
      OK(mg_position_apply(clone, action, NULL));
      OK(mg_position_apply(position, action, NULL));
      char *here = text_of(mg_position_text, position), *there = text_of(mg_position_text, clone);
      CHECK(strcmp(here, there) == 0);
      free(here), free(there);
      OK(mg_free(clone));
    }
  }
  size_t size;
  char name[64];
  OK(mg_game_action_name(game, 0, name, sizeof name, &size));
  CHECK(size > 0 && strlen(name) == size);
  printf("%s: %ld steps, %ld games\n", kind, steps, games);
  free(observation);
  OK(mg_free(game)); /* What was made of it lives on. */
  OK(mg_position_legal(position, mask, sizeof mask));
  OK(mg_free(position));
  OK(mg_free(observer));
}

static void step_environments(mg_handle program, int32_t autoreset, int32_t threads, long steps) {
  enum { COUNT = 16 };
  mg_handle games[2], envs;
  OK(mg_game_create(program, "time", NULL, NULL, 0, &games[0]));
  OK(mg_game_create(program, "time", "tpu_v5e", NULL, 0, &games[1]));
  mg_envs_options options = {autoreset, 1, threads, MG_OBSERVATION_COMPACT};
  OK(mg_envs_create(games, 2, COUNT, &options, &envs));
  mg_envs_info info;
  OK(mg_envs_info_of(envs, &info));
  CHECK(info.count == COUNT && info.threads == threads);
  const size_t row = (size_t)info.observation_size, actions = (size_t)info.num_actions;
  mg_buffers out = {calloc(COUNT * row, sizeof(float)),
                    calloc(COUNT, actions),
                    calloc(COUNT, sizeof(double)),
                    calloc(COUNT, 1),
                    calloc(COUNT, sizeof(int64_t)),
                    calloc(COUNT * row, sizeof(float)),
                    calloc(COUNT, actions)};
  uint64_t seeds[COUNT];
  for (int i = 0; i < COUNT; ++i) seeds[i] = (uint64_t)i;
  OK(mg_envs_reset(envs, seeds, NULL, &out));
  int64_t chosen[COUNT];
  double returns[COUNT] = {0};
  long ends = 0;
  for (long step = 0; step < steps / COUNT; ++step) {
    uint8_t again[COUNT] = {0};
    int any = 0;
    for (int i = 0; i < COUNT; ++i)
      chosen[i] = random_action(out.masks + (size_t)i * actions, info.num_actions);
    OK(mg_envs_step(envs, chosen, &out));
    for (int i = 0; i < COUNT; ++i) {
      returns[i] += out.rewards[i];
      if (!out.terminated[i]) continue;
      CHECK(returns[i] < 1);
      returns[i] = 0, again[i] = 1, any = 1, ++ends;
    }
    if (autoreset == MG_DISABLED && any) {
      for (int i = 0; i < COUNT; ++i)
        chosen[i] = random_action(out.masks + (size_t)i * actions, info.num_actions);
      REFUSED(mg_envs_step(envs, chosen, &out), MG_FAILED_PRECONDITION, "the game is over");
      OK(mg_envs_reset(envs, NULL, again, &out));
    }
  }
  OK(mg_envs_reset(envs, seeds, NULL, &out));
  for (int i = 0; i < COUNT; ++i) chosen[i] = i == 3 ? 99 : 0;
  REFUSED(mg_envs_step(envs, chosen, &out), MG_INVALID_ARGUMENT, "environment 3: action 99");
  mg_handle position;
  OK(mg_envs_position(envs, COUNT - 1, &position));
  OK(mg_free(position));
  REFUSED(mg_envs_position(envs, COUNT, &position), MG_INVALID_ARGUMENT, "0 to 15");
  out.masks = (free(out.masks), NULL);
  REFUSED(mg_envs_step(envs, chosen, &out), MG_INVALID_ARGUMENT, "masks: found a null");
  printf("environments: %ld steps, %ld ends\n", steps, ends);
  free(out.observations), free(out.rewards), free(out.terminated), free(out.latency_ps);
  free(out.final_observations), free(out.final_masks);
  OK(mg_free(envs));
  OK(mg_free(games[0]));
  OK(mg_free(games[1]));
}

static void use_wrongly(mg_handle program, const char* path) {
  mg_handle game, position, none;
  int8_t mask[MOST_ACTIONS];
  size_t size;
  REFUSED(mg_program_load("no such file.mgp", &none), MG_NOT_FOUND, "no such file.mgp");
  REFUSED(mg_program_load(path, NULL), MG_INVALID_ARGUMENT, "program: found a null pointer");
  REFUSED(mg_program_parse("nonsense", 8, &none), MG_INVALID_ARGUMENT, "");
  REFUSED(mg_game_create(program, "chess", NULL, NULL, 0, &none), MG_INVALID_ARGUMENT, "priority");
  REFUSED(mg_game_create(program, "time", "tpu_v99", NULL, 0, &none), MG_NOT_FOUND, "tpu_v5e");
  REFUSED(mg_game_create(program, "time", "{}", NULL, 0, &none), MG_INVALID_ARGUMENT, "");
  mg_option option = {"candidates", 3};
  REFUSED(mg_game_create(program, "time", NULL, &option, 1, &none), MG_INVALID_ARGUMENT,
          "paper_actions");
  option.value = 2.5;
  REFUSED(mg_game_create(program, "priority", NULL, &option, 1, &none), MG_INVALID_ARGUMENT,
          "a whole number");
  option.value = NAN;
  REFUSED(mg_game_create(program, "priority", NULL, &option, 1, &none), MG_INVALID_ARGUMENT,
          "a whole number");
  option.value = 1e6;
  REFUSED(mg_game_create(program, "priority", NULL, &option, 1, &none), MG_INVALID_ARGUMENT,
          "allowed");
  const mg_option forbidden[] = {{"forbidden", 0}, {"forbidden", 1e9}};
  OK(mg_game_create(program, "time", NULL, forbidden, 1, &none));
  OK(mg_free(none));
  REFUSED(mg_game_create(program, "time", NULL, forbidden, 2, &none), MG_INVALID_ARGUMENT, "");

  OK(mg_game_create(program, "time", NULL, NULL, 0, &game));
  OK(mg_position_create(game, &position));
  REFUSED(mg_position_legal(game, mask, sizeof mask), MG_INVALID_ARGUMENT,
          "position: found a handle of a game, allowed: one of a position");
  REFUSED(mg_game_info_of(position, &(mg_game_info){0}), MG_INVALID_ARGUMENT, "of a position");
  REFUSED(mg_position_legal(position, mask, 1), MG_INVALID_ARGUMENT, "room for 1");
  REFUSED(mg_position_legal(position, NULL, 9), MG_INVALID_ARGUMENT, "null");
  REFUSED(mg_position_apply(position, -1, NULL), MG_INVALID_ARGUMENT, "action -1");
  REFUSED(mg_position_apply(position, 4, NULL), MG_INVALID_ARGUMENT, "action 4");
  REFUSED(mg_position_undo(position), MG_FAILED_PRECONDITION, "start");
  REFUSED(mg_position_log(position, "me", 0, NULL, 0, &size), MG_FAILED_PRECONDITION, "not over");
  REFUSED(mg_log_replay(program, "log", 3, NULL), MG_INVALID_ARGUMENT, "");
  REFUSED(mg_game_action_name(game, 4, NULL, 0, &size), MG_INVALID_ARGUMENT, "0 to 3");
  mg_observation wide = MG_OBSERVATION_FULL;
  wide.neighbours = -1;
  REFUSED(mg_observer_create(game, &wide, &none), MG_INVALID_ARGUMENT, "neighbours");
  mg_handle other, observer;
  float numbers[4096];
  OK(mg_game_create(program, "priority", NULL, NULL, 0, &other));
  OK(mg_observer_create(other, &MG_OBSERVATION_COMPACT, &observer));
  REFUSED(mg_observer_write(observer, position, numbers, 4096), MG_INVALID_ARGUMENT,
          "another game");
  mg_envs_options options = {0, 0, 1, MG_OBSERVATION_COMPACT};
  const mg_handle games[] = {game, other};
  REFUSED(mg_envs_create(games, 2, 4, &options, &none), MG_INVALID_ARGUMENT, "");
  REFUSED(mg_envs_create(games, 0, 4, &options, &none), MG_INVALID_ARGUMENT, "");
  REFUSED(mg_envs_create(games, 1, 0, &options, &none), MG_INVALID_ARGUMENT, "num_envs");
  options.autoreset = 7;
  REFUSED(mg_envs_create(games, 1, 4, &options, &none), MG_INVALID_ARGUMENT, "autoreset: found 7");
  OK(mg_free(observer));
  OK(mg_free(other));

  OK(mg_free(position));
  REFUSED(mg_free(position), MG_INVALID_ARGUMENT, "was freed");
  REFUSED(mg_position_undo(position), MG_INVALID_ARGUMENT, "was freed");
  mg_handle reused; /* The place of the old one, under another handle. */
  OK(mg_position_create(game, &reused));
  CHECK(reused != position);
  REFUSED(mg_position_undo(position), MG_INVALID_ARGUMENT, "was freed");
  OK(mg_free(reused));
  OK(mg_free(game));
  const uint64_t wrong[] = {0, 1u << 31, 0xffffffff, ~(uint64_t)0, (uint64_t)1 << 63};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i)
    REFUSED(mg_free(wrong[i]), MG_INVALID_ARGUMENT, "no handle");
  for (int i = 0; i < 10000; ++i) {
    const uint64_t any = (uint64_t)draw(1u << 31) << 32 | draw(1u << 31);
    CHECK(mg_position_apply(any, 0, NULL) == MG_INVALID_ARGUMENT);
  }
}

/* Threads play in one position, step the same environments into the same arrays, and read one
 * game: each call does its work or is refused. */
typedef struct {
  mg_handle game, position, envs;
  const mg_buffers* out;
  long done, refused;
} worker;
static void count(worker* my, int code) {
  if (code == MG_UNAVAILABLE) {
    CHECK(strstr(mg_last_error(), "another thread is using handle") != NULL);
    ++my->refused;
  } else {
    CHECK(code == MG_OK || code == MG_FAILED_PRECONDITION || code == MG_INVALID_ARGUMENT);
    ++my->done;
  }
}
static void* work(void* given) {
  worker* my = given;
  const int64_t actions[] = {0, 0};
  for (int i = 0; i < 20000; ++i) {
    count(my, i % 2 ? mg_position_undo(my->position) : mg_position_apply(my->position, 0, NULL));
    count(my, i % 9 ? mg_envs_step(my->envs, actions, my->out)
                    : mg_envs_reset(my->envs, NULL, NULL, my->out));
    mg_game_info info;
    OK(mg_game_info_of(my->game, &info));
    mg_handle own;
    OK(mg_position_create(my->game, &own));
    OK(mg_free(own));
  }
  return NULL;
}
static void use_from_threads(mg_handle program) {
  worker workers[4];
  pthread_t threads[4];
  mg_handle game, position, envs;
  OK(mg_game_create(program, "time", NULL, NULL, 0, &game));
  OK(mg_position_create(game, &position));
  const mg_envs_options options = {MG_NEXT_STEP, 1, 1, MG_OBSERVATION_COMPACT};
  OK(mg_envs_create(&game, 1, 2, &options, &envs));
  mg_envs_info info;
  OK(mg_envs_info_of(envs, &info));
  float* observations = malloc(2 * (size_t)info.observation_size * sizeof(float));
  int8_t masks[2 * MOST_ACTIONS];
  double rewards[2];
  uint8_t terminated[2];
  int64_t latency_ps[2];
  const mg_buffers out = {observations, masks, rewards, terminated, latency_ps, NULL, NULL};
  long done = 0, refused = 0;
  for (int i = 0; i < 4; ++i) {
    workers[i] = (worker){game, position, envs, &out, 0, 0};
    CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
  }
  for (int i = 0; i < 4; ++i) {
    CHECK(pthread_join(threads[i], NULL) == 0);
    done += workers[i].done, refused += workers[i].refused;
  }
  CHECK(done > 0 && done + refused == 160000);
  printf("threads: %ld calls done, %ld refused\n", done, refused);
  free(observations);
  OK(mg_free(envs));
  OK(mg_free(position));
  OK(mg_free(game));
}

int main(int argc, char** argv) {
  if (argc < 2) return fprintf(stderr, "usage: c_test PROGRAM.mgp [STEPS]\n"), 2;
  const long steps = argc > 2 ? atol(argv[2]) : 5000;
  mg_handle program;
  CHECK(mg_version() / 1000 == MG_VERSION_MAJOR);
  CHECK(strcmp(mg_last_error(), "") == 0);
  OK(mg_program_load(argv[1], &program));
  char* name = text_of(mg_program_name, program);
  printf("%s\n", name);
  free(name);
  const mg_option candidates = {"candidates", 3};
  play(program, "time", NULL, 0, steps);
  play(program, "priority", &candidates, 1, steps);
  play(program, "schedule", NULL, 0, steps);
  for (int32_t mode = MG_NEXT_STEP; mode <= MG_DISABLED; ++mode)
    step_environments(program, mode, 1 + mode, steps);
  use_wrongly(program, argv[1]);
  use_from_threads(program);
  OK(mg_free(program));
  printf("c_test: passed\n");
  return 0;
}
