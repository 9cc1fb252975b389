# Margay: one Makefile. `make help` lists the targets.
#   make [VARIANT=release|debug|asan|ubsan|tsan|cover] [CC=gcc|clang]      output in build/$(VARIANT)
VARIANT ?= release
B := build/$(VARIANT)
CC ?= gcc
PREFIX ?= /usr/local

CPPFLAGS := -Iinclude -Isrc -I$(B)/gen -D_GNU_SOURCE
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wno-missing-field-initializers -Wno-override-init
CFLAGS := -std=c17 -g -fPIC -fvisibility=hidden -ffp-contract=off -fno-math-errno $(WARN)
LDFLAGS :=
ifeq ($(VARIANT),release)
CFLAGS += -O2
else ifeq ($(VARIANT),debug)
CFLAGS += -O0 -DMG_DEBUG
else ifeq ($(VARIANT),asan)
CFLAGS += -O1 -fno-omit-frame-pointer -fsanitize=address -DMG_DEBUG -DMG_ASAN
LDFLAGS += -fsanitize=address
else ifeq ($(VARIANT),ubsan)
CFLAGS += -O1 -fsanitize=undefined -fno-sanitize-recover=undefined -DMG_DEBUG
LDFLAGS += -fsanitize=undefined
else ifeq ($(VARIANT),tsan)
CFLAGS += -O1 -fsanitize=thread -DMG_DEBUG
LDFLAGS += -fsanitize=thread
else ifeq ($(VARIANT),cover)
CFLAGS += -O0 --coverage -DMG_DEBUG
LDFLAGS += --coverage
else
$(error unknown VARIANT $(VARIANT))
endif

objs = $(patsubst src/%.c,$(B)/obj/%.o,$(wildcard $(addsuffix /*.c,$(addprefix src/,$(1)))))
# Layers, lowest first. The core needs libc and small static libraries only.
CORE := base isa ir ptx image analysis pass tool store
CORE_OBJS := $(call objs,$(CORE))
CLI_OBJS := $(call objs,report cli) $(B)/obj/inject/config.o
DEVICE_OBJS := $(call objs,device device/emu)
INPROC_OBJS := $(DEVICE_OBJS) $(call objs,driver inject)
RUNTIME_OBJS := $(call objs,runtime)
STATIC_LIBS := -l:libsqlite3.a -l:libzstd.a -l:liblz4.a
SYS_LIBS := -lm -lpthread -ldl

.PHONY: all clean unit
all: $(B)/bin/margay

$(B)/obj/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/bin/margay: $(CORE_OBJS) $(CLI_OBJS)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ $(STATIC_LIBS) $(SYS_LIBS) -o $@

UNIT_OBJS := $(patsubst tests/unit/%.c,$(B)/obj/tests/%.o,$(wildcard tests/unit/*.c))
$(B)/obj/tests/%.o: tests/unit/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Itests/unit $(CFLAGS) -MMD -MP -c $< -o $@
$(B)/bin/test-unit: $(UNIT_OBJS) $(CORE_OBJS) $(DEVICE_OBJS) $(call objs,report)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ $(STATIC_LIBS) $(SYS_LIBS) -o $@
unit: $(B)/bin/test-unit
	$<

clean:
	rm -rf build

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
