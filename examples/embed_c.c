/* mallocGame in a C program: loads a program file, plays the time game greedily, and writes the
 * game as a log that `mallocgame view` opens.
 *
 *     cc embed_c.c -I/opt/mallocgame/include -L/opt/mallocgame/lib \
 *         -Wl,-rpath,/opt/mallocgame/lib -lmallocgame_c && ./a.out resnet50_b1.tpu_v4i.mgp greedy.mgr
 */
#include <mallocgame.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int code) {
  if (code == MG_OK) return;
  fprintf(stderr, "embed_c: %s\n", mg_last_error());
  exit(2);
}

/* The legal action that saves most now. */
static int32_t best_now(mg_handle position, const int8_t* mask, int32_t num_actions) {
  int64_t most = INT64_MIN;
  int32_t best = 0;
  for (int32_t action = 0; action < num_actions; ++action) {
    int64_t saved_ps;
    if (!mask[action]) continue;
    check(mg_position_apply(position, action, &saved_ps));
    check(mg_position_undo(position));
    if (saved_ps > most) most = saved_ps, best = action;
  }
  return best;
}

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: embed_c PROGRAM.mgp LOG.mgr\n"), 2;
  mg_handle program, game, position;
  mg_game_info info;
  check(mg_program_load(argv[1], &program));
  check(mg_game_create(program, "time", NULL, NULL, 0, &game));
  check(mg_game_info_of(game, &info));
  check(mg_position_create(game, &position));
  int8_t* mask = malloc((size_t)info.num_actions);
  for (;;) {
    mg_position_info now;
    check(mg_position_info_of(position, &now));
    if (now.terminal) {
      printf("all in main memory %lld ps\ngreedy %lld ps\n", (long long)info.all_main_ps,
             (long long)now.latency_ps);
      break;
    }
    check(mg_position_legal(position, mask, (size_t)info.num_actions));
    check(mg_position_apply(position, best_now(position, mask, info.num_actions), NULL));
  }

  size_t size;
  check(mg_position_log(position, "greedy in C", 0, NULL, 0, &size));
  void* log = malloc(size);
  check(mg_position_log(position, "greedy in C", 0, log, size, &size));
  FILE* file = fopen(argv[2], "wb");
  if (file == NULL || fwrite(log, 1, size, file) != size || fclose(file) != 0)
    return perror(argv[2]), 2;
  free(log), free(mask);
  check(mg_free(position));
  check(mg_free(game));
  check(mg_free(program));
  return 0;
}
