/* Uses everything of tacho.h; the test looks at what arrives. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tacho/tacho.h>

static uint64_t passed_on;
static void* stop_elsewhere(void* unused) {
  (void)unused;
  tacho_name_thread("stopper");
  tacho_range_stop(passed_on);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "triggers") == 0) {
    for (int i = 0; i < 10; ++i) {
      char text[20];
      snprintf(text, sizeof text, "%d", i);
      tacho_mark(text);
    }
    return 0;
  }
  if (argc > 1 && strcmp(argv[1], "deep") == 0) {
    for (int i = 0; i < 200; ++i) tacho_range_push("deep");
    for (int i = 0; i < 200; ++i) tacho_range_pop();
    tacho_range_pop(); /* one too many */
    return 0;
  }
  if (argc > 1 && strcmp(argv[1], "domains") == 0) {
    for (int i = 0; i < 20; ++i) {
      char name[20];
      snprintf(name, sizeof name, "domain %d", i);
      tacho_attributes in = TACHO_ATTRIBUTES;
      in.domain = name;
      tacho_range_push_with("in a domain", &in);
    }
    for (int i = 0; i < 20; ++i) {
      char name[20];
      snprintf(name, sizeof name, "domain %d", i);
      tacho_range_pop_from(name);
    }
    return 0;
  }
  printf("%d\n", tacho_active());
  tacho_mark("plain");
  tacho_mark(NULL);
  tacho_attributes attributes = TACHO_ATTRIBUTES;
  attributes.domain = "io";
  attributes.category = "read";
  attributes.has_color = 1;
  attributes.color = 0x80ff0000;
  attributes.payload_kind = TACHO_PAYLOAD_INTEGER;
  attributes.payload.integer = -42;
  tacho_mark_with("with all", &attributes);
  tacho_attributes small = attributes; /* of an older header: what follows `domain` is not there */
  small.size = 16;
  tacho_mark_with("older", &small);
  tacho_range_push("outer");
  tacho_range_push_with("in io", &attributes);
  tacho_range_pop_from("io");
  tacho_range_pop_from("io"); /* nothing open */
  tacho_range_pop();
  attributes.payload_kind = TACHO_PAYLOAD_DOUBLE;
  attributes.payload.real = 0.5;
  passed_on = tacho_range_start_with("across threads", &attributes);
  pthread_t thread;
  pthread_create(&thread, NULL, stop_elsewhere, NULL);
  pthread_join(thread, NULL);
  tacho_range_push("kept whole");
  tacho_pause();
  printf("%d\n", tacho_active());
  tacho_mark("paused");
  tacho_range_push("never");
  tacho_range_pop();
  tacho_range_pop();
  tacho_range_stop(tacho_range_start("never"));
  tacho_range_push("never, popped later");
  tacho_resume();
  tacho_range_pop();
  tacho_mark("resumed");
  tacho_flush();
  tacho_mark("after flush");
  return 0;
}
