# Margay: one Makefile. `make help` lists the targets.
#   make [VARIANT=release|debug|asan|tsan|cover] [CC=gcc|clang]      output in build/$(VARIANT)
VARIANT ?= release
B := build/$(VARIANT)
ifeq ($(origin CC),default)
CC := gcc
endif
PREFIX ?= /usr/local
# The targets that build for themselves use every core unless -j was given.
JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

CPPFLAGS := -Iinclude -Isrc -I$(B)/gen -D_GNU_SOURCE
WARN := -Wall -Wextra -Werror=implicit-function-declaration -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wno-missing-field-initializers -Wno-override-init
# No path of this machine in debug information: builds of two checkouts are the same, to ccache as well.
CFLAGS := -std=c17 -g -fdebug-prefix-map=$(CURDIR)=. -fPIC -fvisibility=hidden -ffp-contract=off -fno-math-errno $(WARN)
LDFLAGS :=
ifeq ($(VARIANT),release)
CFLAGS += -O2
else ifeq ($(VARIANT),debug)
CFLAGS += -O0 -DMG_DEBUG
else ifeq ($(VARIANT),asan)
# Undefined behaviour ends the process by SIGILL: without texts and places of it, programs start in half of the time. `make VARIANT=asan UB_SAYS=1` names the place.
CFLAGS := $(CFLAGS:-g=-g1) -O1 -fno-omit-frame-pointer -fsanitize=address,undefined $(if $(UB_SAYS),-fno-sanitize-recover=undefined,-fsanitize-undefined-trap-on-error) -DMG_DEBUG -DMG_ASAN -DMG_SANITIZER='"asan"'
LDFLAGS += -fsanitize=address,undefined
else ifeq ($(VARIANT),tsan)
CFLAGS := $(CFLAGS:-g=-g1) -O1 -fsanitize=thread -DMG_DEBUG -DMG_SANITIZER='"tsan"'
LDFLAGS += -fsanitize=thread
# Its runtime asks dlsym for its own needs before it can take calls of instrumented code.
$(B)/obj/inject/preload.o $(B)/obj/base/inproc/reserve.o: CFLAGS := $(filter-out -fsanitize=thread,$(CFLAGS))
else ifeq ($(VARIANT),cover)
CFLAGS += -O0 --coverage -DMG_DEBUG
LDFLAGS += --coverage
else
$(error unknown VARIANT $(VARIANT))
endif

objs = $(patsubst src/%.c,$(B)/obj/%.o,$(wildcard $(addsuffix /*.c,$(addprefix src/,$(1)))))
# Layers, lowest first. The core needs libc and small static libraries only.
TOOLS := tool $(patsubst src/%/,%,$(wildcard src/tool/*/))
ROOMS := insert count count/storage patch view record $(TOOLS)
CORE := base abi isa ir ptx image analysis pass trace capture span $(ROOMS) probe store
CORE_OBJS := $(call objs,$(CORE))
REPORT := report report/advice report/overview
CLI_OBJS := $(call objs,$(REPORT) query export study sched cli) $(B)/obj/tau/profile_file.o $(B)/obj/inject/config.o $(B)/obj/inject/choice.o $(B)/obj/inject/range.o
# Lane loops of the emulator are built once per vector ISA and chosen at run time.
VEC_SRCS := $(wildcard src/device/emu/vec_*.c)
VEC_ISAS := base avx2 avx512
VEC_OBJS := $(foreach i,$(VEC_ISAS),$(VEC_SRCS:src/%.c=$(B)/obj/%.$(i).o))
DEVICE_OBJS := $(filter-out $(VEC_SRCS:src/%.c=$(B)/obj/%.o),$(call objs,device device/emu device/cpu)) $(VEC_OBJS)
# What runs inside the application allocates through src/base/inproc/reserve.c.
comma := ,
RESERVE := $(addprefix -Wl$(comma)--wrap=,malloc calloc realloc aligned_alloc strdup strndup malloc_usable_size free)
RESERVE_OBJS := $(call objs,base/inproc)
INPROC_OBJS := $(DEVICE_OBJS) $(RESERVE_OBJS) $(call objs,driver inject inject/capture inject/nvidia)
RUNTIME_OBJS := $(call objs,runtime) $(RESERVE_OBJS)
STATIC_LIBS := -l:libsqlite3.a -l:libzstd.a -l:liblz4.a
SYS_LIBS := -lm -lpthread -ldl

.PHONY: all plugin help deps unit examples demo threaded check check-gpu torture bench benches fuzz bench-ptx bench-emu bench-trace bench-blocks bench-cpu bench-cpu-tools bench-gpu format lint install deb clean
all: deps $(B)/bin/margay $(B)/lib/libtau_cuda.so $(B)/lib/libmargay-profile.so $(B)/lib/margay/driver/libcuda.so.1 $(B)/lib/margay/cudart/libcudart.so.13 $(B)/lib/margay/cudart/libcudart.so.12 $(B)/lib/margay/libmargay-audit.so $(B)/lib/margay/libmargay-forward.so $(B)/lib/margay/libmargay-mpi.so $(B)/lib/margay/margay-replay $(B)/lib/margay/libmargay-core.so $(B)/lib/pkgconfig/.made plugin ## build the program and its libraries
help: ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'
deps:
	@CC=$(CC) scripts/deps build

$(B)/obj/%.o: src/%.c | deps
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

# What a tool in a shared object was built with: refused where it differs (src/tool/plugin.h).
STAMPED := base isa ir analysis pass ptx trace insert count patch view record tool
$(B)/gen/probe-header.h: include/margay/probe.h
	@mkdir -p $(@D)
	@sed 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$$/\\n"/' $< > $@
$(B)/obj/cli/probe_compile.o: $(B)/gen/probe-header.h
# The page of `margay report --html`: its script and style as C texts.
$(B)/gen/page_text.h: scripts/gen-page $(wildcard src/report/page/*)
	@mkdir -p $(@D)
	@sh $< src/report/page > $@.tmp && mv $@.tmp $@
$(B)/obj/report/page.o: $(B)/gen/page_text.h
# Documents that `margay help` prints.
$(B)/gen/help_docs.h: scripts/gen-docs $(wildcard docs/*.md docs/tools/*.md docs/studies/*.md docs/man/*.md)
	@mkdir -p $(@D)
	@sh $< > $@.tmp && mv $@.tmp $@
$(B)/obj/cli/docs.o: $(B)/gen/help_docs.h
$(B)/gen/margay-stamp.h: $(wildcard $(foreach d,$(STAMPED),src/$(d)/*.h src/$(d)/*.def))
	@mkdir -p $(@D)
	@echo "#define MG_TOOL_STAMP \"$$(cat $(sort $^) | sha256sum | cut -c1-32)\"" > $@
$(B)/obj/tool/spec.o $(B)/obj/inject/tools.o: $(B)/gen/margay-stamp.h

# Loops over 32 lanes: vectors read traces half again as fast.
$(B)/obj/trace/access_code.o: CFLAGS += $(if $(filter release,$(VARIANT)),-O3)
VEC_FLAGS := $(if $(filter release,$(VARIANT)),-O3) -fno-trapping-math
VEC_AVX2 := -mavx2 -mfma -mf16c -mbmi -mbmi2
VEC_AVX512 := $(VEC_AVX2) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd -mprefer-vector-width=512
$(B)/obj/%.base.o: src/%.c | deps
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(VEC_FLAGS) -DEMU_ISA=EMU_ISA_BASE -DEMU_SUF=_base -MMD -MP -c $< -o $@
$(B)/obj/%.avx2.o: src/%.c | deps
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(VEC_FLAGS) $(VEC_AVX2) -DEMU_ISA=EMU_ISA_AVX2 -DEMU_SUF=_avx2 -MMD -MP -c $< -o $@
$(B)/obj/%.avx512.o: src/%.c | deps
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(VEC_FLAGS) $(VEC_AVX512) -DEMU_ISA=EMU_ISA_AVX512 -DEMU_SUF=_avx512 -MMD -MP -c $< -o $@

# Arithmetic is the same source for every ISA. Sanitizers look at the source: one object goes by all three names.
VEC_ALIKE := bits cvt float half int x2
ifneq ($(filter asan tsan,$(VARIANT)),)
define alike
$(VEC_ALIKE:%=$(B)/obj/device/emu/vec_alu_%.$(1).o): $(B)/obj/device/emu/vec_alu_%.$(1).o: $(B)/obj/device/emu/vec_alu_%.base.o
	objcopy --redefine-sym alu_$$*_base=alu_$$*_$(1) --redefine-sym __odr_asan.alu_$$*_base=__odr_asan.alu_$$*_$(1) $$< $$@
endef
$(foreach i,avx2 avx512,$(eval $(call alike,$(i))))
endif

# ---- what tools outside the tree are linked with ---------------------------------------------------------
# The archive, and a shared object of it whose name carries the stamp: margay opens its own for tools that ask for it (src/tool/spec.c).
PLUGIN_CORE := $(B)/lib/margay/libmargay-core.a
SHARED_CORE := $(B)/lib/margay/libmargay-core.so
$(B)/bin/export-symbols: scripts/export-symbols.c
	@mkdir -p $(@D)
	gcc -std=c17 -D_GNU_SOURCE -O1 $(WARN) $< -o $@
$(SHARED_CORE): $(PLUGIN_CORE) $(B)/bin/export-symbols $(B)/gen/margay-stamp.h
	ld -r $(if $(filter release,$(VARIANT)),-S) -o $(B)/core.o --whole-archive $(PLUGIN_CORE)
	$(B)/bin/export-symbols $(B)/core.o
	@rm -f $@ $@.*
	name=$(@F).$$(cut -d'"' -f2 $(B)/gen/margay-stamp.h | cut -c1-12) && \
	    $(CC) $(LDFLAGS) -shared -Wl,-soname,$$name -Wl,-Bsymbolic -Wl,--exclude-libs,ALL $(NODEFS) $(B)/core.o -l:liblz4.a -l:libzstd.a -lm -lpthread -ldl -o $(@D)/$$name && ln -sf $$name $@
# pkg-config files: of the build folder here, of an installation by `make install`.
PC_FILES := tool/margay-tool tau/tau_cuda query/margay-profile
pc = sed 's,@PREFIX@,$(2),; s,@LIBDIR@,$(3),; s,@CORE_CFLAGS@,$(4),; s,@VERSION@,$(MARGAY_VERSION),' $(1)
MARGAY_VERSION = $(shell sed -n 's/^.define MG_VERSION "\(.*\)"/\1/p' src/base/version.h)
$(B)/lib/pkgconfig/.made: $(PC_FILES:%=src/%.pc.in) src/base/version.h
	@mkdir -p $(@D)
	@$(foreach f,$(PC_FILES),$(call pc,src/$(f).pc.in,$(CURDIR),$(abspath $(B))/lib,-I$(CURDIR)/src -I$(abspath $(B))/gen) > $(@D)/$(notdir $(f)).pc && ) touch $@
$(PLUGIN_CORE): $(call objs,base isa ir ptx analysis pass trace $(ROOMS) probe) $(B)/obj/image/sass.o
	@mkdir -p $(@D)
	@rm -f $@
	ar rcs $@ $^

$(B)/bin/margay: $(CORE_OBJS) $(CLI_OBJS)
	@mkdir -p $(@D) $(B)/lib/margay/tools
	$(CC) $(LDFLAGS) $^ $(STATIC_LIBS) -l:libncursesw.a -l:libtinfo.a $(SYS_LIBS) -o $@
	@ln -sf ../../../bin/margay $(B)/lib/margay/tools/ptxas

# ---- libmargay: SONAME libcuda.so.1, exports exactly the interposed names, needs glibc alone ----
LIBCUDA := $(B)/lib/margay/driver/libcuda.so.1
NODEFS := $(if $(filter release debug,$(VARIANT)),-Wl$(comma)-z$(comma)defs)
$(B)/gen/thunks.S: scripts/gen-thunks src/abi/entries.def src/inject/hooks.def
	@mkdir -p $(@D)
	@sh $< asm src/abi/entries.def src/inject/hooks.def > $@.tmp && mv $@.tmp $@
$(B)/gen/margay.map: scripts/gen-thunks src/abi/entries.def src/inject/hooks.def
	@mkdir -p $(@D)
	@sh $< map src/abi/entries.def src/inject/hooks.def > $@.tmp && mv $@.tmp $@
$(B)/obj/gen/thunks.o: $(B)/gen/thunks.S
	@mkdir -p $(@D)
	gcc -c $< -o $@
$(LIBCUDA): $(CORE_OBJS) $(INPROC_OBJS) $(B)/obj/gen/thunks.o $(B)/gen/margay.map
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libcuda.so.1 -Wl,--version-script=$(B)/gen/margay.map -Wl,--exclude-libs,ALL \
	    -Wl,-Bsymbolic $(NODEFS) $(RESERVE) $(filter %.o,$^) $(STATIC_LIBS) $(SYS_LIBS) -o $@
	@ln -sf libcuda.so.1 $(@D)/libcuda.so

# ---- in front of the program's CUDA runtime, for the time line ----
FORWARD := $(B)/lib/margay/libmargay-forward.so
RT_NAMES := src/runtime/exports.def src/runtime/cudart12/exports.def
$(B)/gen/forward.S: scripts/gen-thunks $(RT_NAMES)
	@mkdir -p $(@D)
	@sh $< forward $(RT_NAMES) > $@.tmp && mv $@.tmp $@
$(B)/gen/forward.map: scripts/gen-thunks $(RT_NAMES)
	@mkdir -p $(@D)
	@sh $< forward-map $(RT_NAMES) > $@.tmp && mv $@.tmp $@
$(B)/gen/forward-names.def: scripts/gen-thunks $(RT_NAMES)
	@mkdir -p $(@D)
	@sh $< forward-names $(RT_NAMES) > $@.tmp && mv $@.tmp $@
$(FORWARD): src/inject/forward/forward.c $(B)/gen/forward.S $(B)/gen/forward.map $(B)/gen/forward-names.def src/inject/calls.h
	@mkdir -p $(@D)
	gcc $(CPPFLAGS) -std=c17 -O2 -fPIC -fvisibility=hidden $(WARN) -shared -Wl,-z,defs -Wl,--version-script=$(B)/gen/forward.map \
	    $< $(B)/gen/forward.S -ldl -lpthread -o $@

MPI := $(B)/lib/margay/libmargay-mpi.so
$(B)/gen/mpi.S $(B)/gen/mpi.map: scripts/gen-thunks src/inject/mpi/calls.def
	@mkdir -p $(@D)
	@sh $< mpi$(if $(filter %.map,$@),-map) src/inject/mpi/calls.def /dev/null > $@.tmp && mv $@.tmp $@
MPI_SOURCES := $(wildcard src/inject/mpi/*.c) src/base/env.c
$(MPI): $(MPI_SOURCES) src/inject/mpi/mpi.h src/inject/mpi/calls.def $(B)/gen/mpi.S $(B)/gen/mpi.map src/inject/calls.h src/span/records.h
	@mkdir -p $(@D)
	gcc $(CPPFLAGS) -std=c17 -O2 -fPIC -fvisibility=hidden $(WARN) -shared -Wl,-z,defs -Wl,--version-script=$(B)/gen/mpi.map \
	    $(MPI_SOURCES) $(B)/gen/mpi.S -ldl -lpthread -o $@

# ---- what `margay replay` starts: a program over the driver's interface ----
REPLAY := $(B)/lib/margay/margay-replay
$(B)/gen/stand-alone.h: src/replay/export/stand_alone.c
	@mkdir -p $(@D)
	@sed 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$$/\\n"/' $< > $@
$(B)/obj/replay/export.o: $(B)/gen/stand-alone.h
$(REPLAY): $(call objs,replay) $(CORE_OBJS)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -Wl,--gc-sections $^ $(STATIC_LIBS) $(SYS_LIBS) -o $@

AUDIT := $(B)/lib/margay/libmargay-audit.so
$(AUDIT): src/inject/audit/audit.c
	@mkdir -p $(@D)
	gcc -std=c17 -D_GNU_SOURCE -O2 -fPIC -fvisibility=hidden $(WARN) -shared -Wl,-z,defs $< -o $@

# ---- the TAUcuda interface: finds the driver at run time, needs glibc alone --------------------------------
LIBTAU := $(B)/lib/libtau_cuda.so
TAU_OBJS := $(call objs,tau) $(addprefix $(B)/obj/base/,arena.o buf.o env.o demangle.o diag.o intern.o io.o number.o vec.o rank.o hash.o map.o)
$(LIBTAU): $(TAU_OBJS)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libtau_cuda.so -Wl,--gc-sections $(NODEFS) $^ -lpthread -ldl -lm -o $@

# ---- profiles for other programs: what report/ and store/ know, behind include/margay/profile.h ------------------
LIBPROFILE := $(B)/lib/libmargay-profile.so
$(LIBPROFILE): $(CORE_OBJS) $(call objs,$(REPORT) query) $(B)/obj/tau/profile_file.o
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libmargay-profile.so -Wl,--gc-sections -Wl,--exclude-libs,ALL -Wl,-Bsymbolic $(NODEFS) $^ $(STATIC_LIBS) $(SYS_LIBS) -o $@

# ---- our CUDA runtime: needs glibc alone, exports the names of exports.def under one version node ----
CUDART := $(B)/lib/margay/cudart/libcudart.so.13
$(B)/gen/cudart.map: src/runtime/exports.def
	@mkdir -p $(@D)
	@{ echo 'libcudart.so.13 {'; echo '  global:'; sed -n 's/^RT_EXPORT(\(.*\))/    \1;/p' $<; echo '  local: *;'; echo '};'; } > $@
$(CUDART): $(RUNTIME_OBJS) $(B)/gen/cudart.map
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libcudart.so.13 -Wl,--version-script=$(B)/gen/cudart.map -Wl,-Bsymbolic-functions -Wl,-z,defs $(RESERVE) $(RUNTIME_OBJS) -lpthread -ldl -o $@

# the runtime of CUDA 12 is refused by name (src/runtime/cudart12)
CUDART12 := $(B)/lib/margay/cudart/libcudart.so.12
$(B)/gen/cudart12.map: src/runtime/exports.def src/runtime/cudart12/exports.def
	@mkdir -p $(@D)
	@{ echo 'libcudart.so.12 {'; echo '  global:'; cat $^ | sed -n 's/^RT_EXPORT(\(.*\))/    \1;/p'; echo '  local: *;'; echo '};'; } > $@
$(CUDART12): $(B)/obj/runtime/cudart12/refuse.o $(B)/gen/cudart12.map
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libcudart.so.12 -Wl,--version-script=$(B)/gen/cudart12.map -Wl,-z,defs $< -o $@

# ---- a driver library over the emulator under NVIDIA's name: --device nvidia is tested with it -------
EMU_GPU := $(B)/test/driver/libcuda.so.1
$(B)/gen/plain.S: scripts/gen-thunks src/abi/entries.def
	@mkdir -p $(@D)
	@sh $< plain src/abi/entries.def /dev/null > $@.tmp && mv $@.tmp $@
$(B)/gen/plain.map: scripts/gen-thunks src/abi/entries.def
	@mkdir -p $(@D)
	@sh $< map src/abi/entries.def /dev/null > $@.tmp && mv $@.tmp $@
$(B)/obj/gen/plain.o: $(B)/gen/plain.S
	@mkdir -p $(@D)
	gcc -c $< -o $@
$(B)/obj/tests/inject/%.o: tests/inject/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@
$(EMU_GPU): $(CORE_OBJS) $(DEVICE_OBJS) $(call objs,driver) $(B)/obj/tests/inject/emu_gpu.o $(B)/obj/gen/plain.o $(B)/gen/plain.map
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libcuda.so.1 -Wl,--version-script=$(B)/gen/plain.map -Wl,--exclude-libs,ALL \
	    -Wl,-Bsymbolic $(NODEFS) $(filter %.o,$^) $(STATIC_LIBS) $(SYS_LIBS) -o $@

# ---- the CPU device's plugin: needs LLVM (19, also 22); left out where there is none --------------------
# LLVM is linked into it, so that at run time it needs glibc alone; shared where its archives are not installed. `make LLVM_CONFIG=` leaves it out.
LLVM_CONFIG ?= $(shell for v in 19 22; do command -v llvm-config-$$v && break; done 2>/dev/null)
CPU_PLUGIN := $(if $(LLVM_CONFIG),$(B)/lib/margay/libmargay-cpu.so)
PLUGIN_OBJS := $(patsubst src/%.c,$(B)/obj/%.o,$(wildcard src/device/cpu/plugin/*.c))
archive = $(filter /%,$(shell $(CC) -print-file-name=$(1)))
LLVM_ARCHIVES = $(and $(wildcard $(shell $(LLVM_CONFIG) --libdir)/libLLVMX86CodeGen.a),$(call archive,libstdc++.a),$(call archive,libz.a),$(call archive,libtinfo.a))
LLVM_LIBS = $(if $(LLVM_ARCHIVES),-Wl$(comma)--gc-sections -static-libgcc $(shell $(LLVM_CONFIG) --link-static --libs passes x86) -l:libstdc++.a -l:libz.a -l:libzstd.a -l:libtinfo.a -lm -ldl,\
    -lLLVM-$(firstword $(subst ., ,$(shell $(LLVM_CONFIG) --version))))
$(B)/obj/device/cpu/plugin/%.o: src/device/cpu/plugin/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -isystem $(shell $(LLVM_CONFIG) --includedir) $(if $(LLVM_ARCHIVES),-DCPU_LLVM_LINKED) $(CFLAGS) -MMD -MP -c $< -o $@
$(B)/lib/margay/libmargay-cpu.so: $(PLUGIN_OBJS) $(B)/obj/device/cpu/flow.o $(B)/obj/device/cpu/split.o $(B)/obj/device/cpu/uses.o $(B)/obj/analysis/graph.o $(B)/obj/device/emu/mufu_tables.o $(B)/obj/base/arena.o $(B)/obj/base/env.o
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -s -Wl,-soname,libmargay-cpu.so -Wl,-Bsymbolic -Wl,--exclude-libs,ALL $(NODEFS) $^ -L$(shell $(LLVM_CONFIG) --libdir) $(LLVM_LIBS) -lpthread -o $@

# What made a stored piece of code: all that the plugin is built from, and that both sides must agree on.
$(B)/gen/cpu_maker.h: $(wildcard src/device/cpu/plugin/*.[ch]) src/device/cpu/cpu.h $(wildcard src/device/cpu/*.c) $(wildcard src/device/emu/*.h) src/device/device.h
	@mkdir -p $(@D)
	@echo "#define CPU_MAKER \"$$(cat $^ | sha256sum | cut -c1-32) LLVM $(if $(LLVM_CONFIG),$(shell $(LLVM_CONFIG) --version),none)\"" > $@
$(B)/obj/device/cpu/library.o: $(B)/gen/cpu_maker.h

plugin: $(CPU_PLUGIN)
	@[ -n "$(CPU_PLUGIN)" ] || [ "$(origin LLVM_CONFIG)" != file ] || ! { command -v llvm-config-19 || command -v llvm-config-22; } > /dev/null || $(MAKE) plugin # installed since make began

UNIT_OBJS := $(patsubst tests/unit/%.c,$(B)/obj/tests/%.o,$(wildcard tests/unit/*.c))
$(B)/obj/tests/%.o: tests/unit/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Itests/unit $(CFLAGS) -MMD -MP -c $< -o $@
$(B)/bin/test-unit: $(UNIT_OBJS) $(CORE_OBJS) $(B)/obj/tau/nest.o $(B)/obj/tau/profile_file.o $(DEVICE_OBJS) $(call objs,driver $(REPORT) study sched query) $(B)/obj/cli/opt.o $(B)/obj/inject/choice.o $(B)/obj/inject/range.o $(B)/obj/inject/twin_clock.o $(B)/obj/inject/covered.o $(B)/obj/inject/nvidia/nv_clock.o $(B)/obj/inject/nvidia/cupti_join.o | $(EMU_GPU)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ $(STATIC_LIBS) $(SYS_LIBS) -o $@
unit: $(B)/bin/test-unit ## run the unit tests
	$<

$(B)/bin/mkprofile: $(B)/obj/cli/tests/mkprofile.o $(call objs,base store isa) $(B)/obj/count/fit.o
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ $(STATIC_LIBS) $(SYS_LIBS) -o $@
$(B)/bin/mktrace: tests/cli/mktrace.c $(call objs,base trace)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $^ $(STATIC_LIBS) $(SYS_LIBS) -o $@
$(B)/obj/cli/tests/mkprofile.o: tests/cli/mkprofile.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -Wno-unused-function -MMD -MP -c $< -o $@

# ---- examples: driver-API builds need clang alone, runtime-API builds need nvcc ------------------
EXAMPLES := saxpy reduce divergent matmul histogram stencil bfs exchange
NVCC := $(shell command -v nvcc 2>/dev/null || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
CLANG := $(shell command -v clang 2>/dev/null || command -v clang-14 2>/dev/null)
MPICC := $(shell command -v mpicc 2>/dev/null)
CLANG_PTX := -x cuda --cuda-path=/nonexistent --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib
EX := $(B)/examples
examples: $(if $(CLANG),$(EXAMPLES:%=$(EX)/%) $(EX)/interpolate $(EX)/md.ptx.o $(if $(MPICC),$(EX)/md)) $(if $(NVCC),$(EXAMPLES:%=$(EX)/%-rt)) ## build the bundled CUDA programs
$(EX)/%.ptx: examples/%/kernel.cu examples/common/device.h
	@mkdir -p $(@D)
	$(CLANG) $(CLANG_PTX) -O2 -gline-tables-only -S $< -o $@
$(EX)/%.ptx.o: $(EX)/%.ptx examples/common/ptx.S
	gcc -c '-DPTX="$<"' examples/common/ptx.S -o $@
$(EX)/%.o: examples/%/main.c examples/common/host.h
	@mkdir -p $(@D)
	gcc -std=c17 -O2 -ffp-contract=off $(WARN) -c $< -o $@
$(EX)/host.o: examples/common/host.c examples/common/host.h
	@mkdir -p $(@D)
	gcc -std=c17 -O2 $(WARN) -Wno-missing-prototypes -c $< -o $@
$(EXAMPLES:%=$(EX)/%): $(EX)/%: $(EX)/%.o $(EX)/%.ptx.o $(EX)/host.o | $(B)/lib/margay/driver/libcuda.so.1
	gcc $^ -L$(B)/lib/margay/driver -l:libcuda.so.1 -o $@
# streams, threads, two devices and TAUcuda: beyond host.h
$(EX)/interpolate: examples/interpolate/main.c $(EX)/interpolate.ptx.o | $(B)/lib/margay/driver/libcuda.so.1 $(LIBTAU)
	gcc -std=c17 -D_GNU_SOURCE -O2 -ffp-contract=off $(WARN) -Iinclude $^ -L$(B)/lib/margay/driver -l:libcuda.so.1 -L$(B)/lib -ltau_cuda -lpthread \
	    -Wl,-rpath,'$$ORIGIN/../lib' -o $@
# several ranks: where there is a compiler for MPI
$(EX)/md: examples/md/main.c $(EX)/md.ptx.o | $(B)/lib/margay/driver/libcuda.so.1
	$(MPICC) -std=c17 -O2 $^ -L$(B)/lib/margay/driver -l:libcuda.so.1 -lm -o $@
# nvcc's work is the same in all variants: done once
EX_RT := build/examples
$(EX_RT)/host-rt.o: examples/common/host_runtime.cu examples/common/host.h
	@mkdir -p $(@D)
	$(NVCC) -O2 -c $< -o $@
$(EX_RT)/%-rt: examples/%/main.c examples/%/kernel.cu $(EX_RT)/host-rt.o
	$(NVCC) -x cu -O3 -Xcompiler -ffp-contract=off -lineinfo -arch=sm_90 -include examples/$*/kernel.cu -c $< -o $@.o
	$(NVCC) -cudart shared $@.o $(EX_RT)/host-rt.o -o $@
$(EXAMPLES:%=$(EX)/%-rt): $(EX)/%-rt: $(EX_RT)/%-rt
	@mkdir -p $(@D)
	@cp $< $@
.SECONDARY:

demo: ## profile a bundled CUDA program on whatever device is there
	@scripts/deps build && scripts/deps demo
	@$(MAKE) --no-print-directory -s $(JOBS) all examples
	@scripts/demo $(B)

# The address and undefined-behaviour sanitizers' build runs what can go wrong inside the application; the release build runs everything.
# Left to the release build, and what covers the same code here: online (cli/of_trace), replay_parts (capture), one_more (cli/compare), subset_pack
# (cli/subset), manual (cli/run, habits), app/apart (inject/apart, app/schemes), channel (inject/records), scenarios (inject/timeline); the suite_*
# test scripts of the tree.
UNSANITIZED := app/online app/apart inject/channel inject/scenarios inject/replay_parts inject/capture_entries cli/one_more cli/subset_pack cli/manual app/suite_tools app/suite_witness cli/suite_cost
SANITIZED = unit $(filter-out $(UNSANITIZED:%=tests/%.sh),$(wildcard tests/app/*.sh tests/cli/*.sh tests/inject/*.sh))
# The thread sanitizer's: launches from many threads, through driver, inject and emulator.
THREADED := $(addprefix tests/inject/,storm.sh children.sh conditional.sh devices.sh ahead.sh)
threaded: deps $(B)/bin/margay $(LIBCUDA) $(CUDART) $(CUDART12) $(AUDIT) $(FORWARD) $(MPI) plugin $(EMU_GPU) # what they need
check: began := $(shell date +%s)
check: ## build and pass every test, sanitizer builds included
	@scripts/deps build && scripts/deps check
	@$(MAKE) --no-print-directory -s $(JOBS) all examples benches $(B)/bin/test-unit
	@$(MAKE) --no-print-directory -s $(JOBS) VARIANT=asan all examples build/asan/bin/test-unit
	@$(MAKE) --no-print-directory -s $(JOBS) VARIANT=tsan threaded
	@tests/run --build $(B) --since $(began) --also build/asan $(SANITIZED) --also build/tsan $(THREADED)

# What make check runs in seconds, at length: bounded by each test's own limits. Every script prints its seed.
torture: all examples $(EMU_GPU) ## mutants, damaged profiles, kills, thread storms, unloaded modules, litmus tests; CCCL=DIR: programs over it; SEED=S: as before; TORTURE=long
	@seed=$${SEED:-$$(date +%s)}; echo "SEED=$$seed"; TORTURE=$${TORTURE:-1} SEED=$$seed STORMS=$${STORMS:-30} N=4000 CCCL=$(CCCL) \
	    tests/run --build $(B) --timeout 7200 'tests/torture/*' tests/inject/storm.sh tests/inject/unloads.sh

# ---- fuzzing: tests/fuzz/fuzz_<target>.c with a seed corpus; replayed without libFuzzer by make check -----
FUZZ := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SECONDS ?= 60
# All targets in one program.
$(B)/obj/tests/fuzz/fuzz_%.o: tests/fuzz/fuzz_%.c tests/fuzz/fuzz.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -DLLVMFuzzerTestOneInput=fuzz_$* -MMD -MP -c $< -o $@
$(B)/bin/replay: tests/fuzz/replay.c $(FUZZ:%=$(B)/obj/tests/fuzz/fuzz_%.o) $(CORE_OBJS) $(call objs,$(REPORT) query study) $(B)/obj/tau/profile_file.o $(B)/obj/device/cpu/object.o
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) '-DTARGETS=$(foreach f,$(FUZZ),X($(f)))' $(LDFLAGS) $^ $(STATIC_LIBS) $(SYS_LIBS) -o $@
fuzz: $(FUZZ:%=fuzz-%) ## fuzz every parser of bytes for FUZZ_SECONDS each (60)
build/fuzz/bin/%: tests/fuzz/fuzz_%.c $(wildcard $(addsuffix /*.c,$(addprefix src/,$(CORE) $(REPORT) query study))) src/device/cpu/object.c src/tau/profile_file.c | $(B)/gen/margay-stamp.h $(B)/gen/page_text.h
	@scripts/deps fuzz
	@mkdir -p $(@D)
	clang $(CPPFLAGS) -std=c17 -g -O1 -w -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -DMG_DEBUG -DMG_ASAN -DMG_SANITIZER='"asan"' $^ $(STATIC_LIBS) $(SYS_LIBS) -o $@
fuzz-kernels: all ## random kernels on every software device for FUZZ_SECONDS: equal results and counts (DEVICES=emu,nvidia BESIDE=one-liner WITH=lanes,memory)
	gcc -O1 -o $(B)/fuzz-launch tests/fuzz/kernels/launch.c -L$(B)/lib/margay/driver -lcuda
	tests/fuzz/kernels/compare --margay $(B)/bin/margay --launch $(B)/fuzz-launch --seconds $(FUZZ_SECONDS) --from $(or $(FUZZ_FROM),1000) --keep build/fuzz/kernels $(if $(DEVICES),--devices $(DEVICES)) $(if $(BESIDE),--beside '$(BESIDE)') $(if $(WITH),--tools $(WITH))
fuzz-%: build/fuzz/bin/%
	@mkdir -p build/fuzz/corpus/$*
	ASAN_OPTIONS=detect_leaks=0 $< -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -artifact_prefix=build/fuzz/$*- build/fuzz/corpus/$* tests/fuzz/corpus/$*

check-gpu: ## what needs an NVIDIA GPU (with VARIANT=release)
	@$(MAKE) --no-print-directory -s all examples
	@tests/run --build $(B) --gpu 'tests/gpu/*'

benches: $(B)/bin/bench-ptx $(B)/bin/bench-emu $(B)/bin/bench-cpu $(B)/bin/bench-cpu-kernels $(B)/bin/bench-gpu ## build the benchmarks, run none
bench: bench-ptx bench-emu ## run the benchmarks; each prints ratios measured in the same run

# ---- front-end benchmark -----------------------------------------------------------------------
$(B)/bin/bench-ptx: bench/ptx/bench.c $(call objs,base isa ir ptx analysis)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $^ $(SYS_LIBS) -o $@
bench-ptx: $(B)/bin/bench-ptx
	bench/ptx/run $<

# ---- emulator benchmark ------------------------------------------------------------------------
$(B)/obj/bench/native.%.o: bench/emu/native.c
	@mkdir -p $(@D)
	gcc -std=c17 -O3 $(if $(filter native,$*),-march=native) -DNATIVE=$* -c $< -o $@
$(B)/bin/bench-emu: bench/emu/bench_emu.c $(B)/obj/bench/native.scalar.o $(B)/obj/bench/native.native.o $(call objs,base isa ir ptx analysis) $(DEVICE_OBJS)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $^ $(SYS_LIBS) -o $@
bench-emu: $(B)/bin/bench-emu
	$<

# ---- what recording every access costs: make bench-trace [DEVICE=nvidia|cpu|emu] ---------------------
DEVICE ?= nvidia
bench-trace: all
	bench/trace/run $(B) --device $(DEVICE) $(if $(filter nvidia,$(DEVICE)),,--small)

# ---- counters on a GPU: make bench-gpu [ROUNDS=15] [ONLY=a,b] ---------------------------------------
$(B)/bin/bench-gpu: bench/gpu/bench.c bench/gpu/works.c bench/gpu/probes.c bench/gpu/bench.h bench/gpu/probes.h $(call objs,base isa ir ptx analysis pass trace $(ROOMS) probe) $(B)/obj/image/sass.o
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -Wno-missing-prototypes $(LDFLAGS) $(filter-out %.h,$^) $(STATIC_LIBS) $(SYS_LIBS) -lm -o $@
$(B)/bench/gpu/kernels.%.ptx: bench/gpu/kernels.cu bench/gpu/hand.h
	@mkdir -p $(@D)
	$(NVCC) -O3 -lineinfo -arch=compute_$* -ptx $< -o $@
HAND_PTX := $(foreach n,1 2 3 4 5 6,$(B)/bench/gpu/hand.$(n).ptx)
$(B)/bench/gpu/hand.%.ptx: bench/gpu/kernels.cu bench/gpu/hand.h
	@mkdir -p $(@D)
	$(NVCC) -O3 -lineinfo -DHAND=$* -arch=compute_90 -ptx $< -o $@
bench-gpu: $(B)/bin/bench-gpu $(B)/bench/gpu/kernels.90.ptx $(B)/bench/gpu/kernels.75.ptx $(HAND_PTX) ## what counting costs on a GPU: every scheme against native code
	bench/gpu/run $(B) $(or $(ROUNDS),15) $(ONLY)

# ---- the CPU device against native C ----------------------------------------------------------------
$(B)/obj/bench/cpu.%.o: bench/cpu/native.c bench/cpu/native.h
	@mkdir -p $(@D)
	gcc -std=c17 -O3 -march=native -fopenmp $(if $(filter fast,$*),-ffast-math) -DVARIANT=$* -c $< -o $@
$(B)/obj/bench/cpu.ptx: bench/cpu/kernels.cu bench/kernels.cuh
	@mkdir -p $(@D)
	$(NVCC) -O3 -arch=sm_80 -ptx $< -o $@
$(B)/obj/bench/cox.%.o: bench/cpu/cox.c bench/cpu/native.h
	@mkdir -p $(@D)
	$(if $(filter clang,$*),$(CLANG),gcc) -std=c17 -O3 -march=native -DVARIANT=$* -c $< -o $@
$(B)/bin/bench-cpu: bench/cpu/bench_cpu.c bench/cpu/opencl.c $(B)/obj/bench/cpu.strict.o $(B)/obj/bench/cpu.fast.o $(B)/obj/bench/cox.gcc.o $(if $(CLANG),$(B)/obj/bench/cox.clang.o) $(call objs,base isa ir ptx analysis) $(DEVICE_OBJS)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -Ibench/cpu $(CFLAGS) $(if $(CLANG),-DCOX_CLANG) $(LDFLAGS) $^ -fopenmp $(SYS_LIBS) -o $@
bench-cpu: $(B)/bin/bench-cpu $(B)/obj/bench/cpu.ptx all ## the CPU device against native C, OpenCL and COX's form of warp shuffles; what a first launch costs
	$< $(B)/obj/bench/cpu.ptx bench/cpu/kernels.cl
	$< -t $(shell nproc) $(B)/obj/bench/cpu.ptx bench/cpu/kernels.cl
	gcc -std=c17 -D_GNU_SOURCE -O1 bench/cpu/start.c -L$(B)/lib/margay/driver -lcuda -o $(B)/bin/bench-cpu-start
	bench/cpu/start --margay $(B)/bin/margay --start $(B)/bin/bench-cpu-start $(B)/obj/bench/cpu.ptx

$(B)/bin/bench-cpu-functions: bench/cpu/functions.c $(call objs,base isa ir ptx analysis) $(DEVICE_OBJS)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $^ $(SYS_LIBS) -o $@
.PHONY: bench-cpu-functions bench-cpu-twins
bench-cpu-functions: $(B)/bin/bench-cpu-functions all ## compiled arithmetic against the emulator's, for all 2^32 operands
	$<

# ---- kernels that nobody tuned for against their twins in C: make bench-cpu-twins [SEED=1] [COUNT=100] ----
# C is compiled for the vectors that the device may use: with MARGAY_ISA=avx2 without AVX-512.
TWINS := $(B)/bench/twins-$(or $(SEED),1)-$(or $(COUNT),100)
TWINS_ARCH := $(if $(filter avx2,$(MARGAY_ISA)),x86-64-v3,native)
TWINS_BIN := $(B)/bin/bench-cpu-$(notdir $(TWINS))$(if $(filter-out native,$(TWINS_ARCH)),-$(TWINS_ARCH))
$(TWINS)/list.h: bench/cpu/gen-twins $(wildcard bench/cpu/by-hand/$(or $(SEED),1).c)
	bench/cpu/gen-twins $(@D) --seed $(or $(SEED),1) --count $(or $(COUNT),100)
$(TWINS)/native.c $(TWINS)/kernels.cu: $(TWINS)/list.h
TWINS_CODES := gcc gcc_fast $(if $(CLANG),clang clang_fast)
$(TWINS)/$(TWINS_ARCH).%.o: $(TWINS)/native.c
	$(if $(filter clang%,$*),$(CLANG) -Wno-pass-failed,gcc) -std=gnu17 -O3 -march=$(TWINS_ARCH) -mtune=native -fopenmp-simd $(if $(filter %_fast,$*),-ffast-math) $(if $(filter clang_fast,$*),-fveclib=libmvec) -DVARIANT=$* -c $< -o $@
$(TWINS)/kernels.ptx: $(TWINS)/kernels.cu
	$(NVCC) -O3 -arch=sm_80 -ptx $< -o $@
$(TWINS_BIN): bench/cpu/twins.c $(TWINS)/list.h $(TWINS_CODES:%=$(TWINS)/$(TWINS_ARCH).%.o) $(call objs,base isa ir ptx analysis) $(DEVICE_OBJS)
	$(CC) $(CPPFLAGS) -I$(TWINS) $(CFLAGS) -DARCH='"$(TWINS_ARCH)"' $(if $(CLANG),-DWITH_CLANG) $(LDFLAGS) $(filter-out %.h,$^) $(SYS_LIBS) -lm -o $@
bench-cpu-twins: $(TWINS_BIN) $(TWINS)/kernels.ptx all ## generated kernels on the CPU device against C for the same work
	taskset -c 0 $< $(TWINS)/kernels.ptx

# ---- what tools cost on the CPU device, kernel by kernel, in CPU time over that under none: make bench-cpu-tools [WITH='lanes values'] ----
$(B)/bin/bench-cpu-kernels: bench/cpu/kernels.c all
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -D_GNU_SOURCE $< -L$(B)/lib/margay/driver -lcuda -o $@
bench-cpu-tools: $(B)/bin/bench-cpu-kernels $(B)/obj/bench/cpu.ptx
	@for t in none $(or $(WITH),blocks); do MARGAY_CPU_TIER=sync $(B)/bin/margay run -q --device cpu --workers=1 -t $$t -o $(B)/bench-cpu.$$t -- $< $(B)/obj/bench/cpu.ptx > $(B)/bench-cpu.$$t.tsv || exit 1; done
	@for t in $(or $(WITH),blocks); do paste $(B)/bench-cpu.none.tsv $(B)/bench-cpu.$$t.tsv | awk -v t=$$t '{r = $$4 / $$2; s += log(r); printf "%-13s %9.3f ms %9.3f ms  %5.2f\n", $$1, $$2, $$4, r} END {printf "%s: geomean %.2f\n", t, exp(s / NR)}'; done

# ---- cost of the tool blocks over programs: make bench-blocks PROGRAMS=folder SUITE=folder --------------
bench-blocks: all
	bench/blocks $(B)/bin/margay $(PROGRAMS) --suite $(SUITE)

CORE_INCLUDE = $(DESTDIR)$(PREFIX)/include/margay/core
install: all ## install under PREFIX
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/margay/driver $(DESTDIR)$(PREFIX)/lib/margay/cudart
	install -m 755 $(B)/bin/margay $(DESTDIR)$(PREFIX)/bin/margay
	install -m 755 $(B)/lib/margay/driver/libcuda.so.1 $(DESTDIR)$(PREFIX)/lib/margay/driver/
	ln -sf libcuda.so.1 $(DESTDIR)$(PREFIX)/lib/margay/driver/libcuda.so
	install -m 755 $(wildcard $(B)/lib/margay/cudart/libcudart.so.*) $(DESTDIR)$(PREFIX)/lib/margay/cudart/
	install -m 755 $(B)/lib/margay/libmargay-audit.so $(B)/lib/margay/libmargay-forward.so $(MPI) $(REPLAY) $(DESTDIR)$(PREFIX)/lib/margay/
	$(if $(CPU_PLUGIN),install -m 755 $(CPU_PLUGIN) $(DESTDIR)$(PREFIX)/lib/margay/)
	install -d $(DESTDIR)$(PREFIX)/lib/margay/tools && ln -sf ../../../bin/margay $(DESTDIR)$(PREFIX)/lib/margay/tools/ptxas
	install -m 755 $(LIBTAU) $(LIBPROFILE) $(DESTDIR)$(PREFIX)/lib/
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig
	$(foreach f,$(PC_FILES),$(call pc,src/$(f).pc.in,$(PREFIX),$(PREFIX)/lib,-I$(PREFIX)/include/margay/core) > $(DESTDIR)$(PREFIX)/lib/pkgconfig/$(notdir $(f)).pc && ) :
	install -d $(DESTDIR)$(PREFIX)/include/margay && install -m 644 include/margay/*.h $(DESTDIR)$(PREFIX)/include/margay/
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	scripts/gen-man $(B)/bin/margay $(B)/man && install -m 644 $(B)/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	scripts/gen-completion $(B)/bin/margay > $(B)/completion && install -m 644 $(B)/completion $(DESTDIR)$(PREFIX)/share/bash-completion/completions/margay
	install -d $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	scripts/gen-completion-zsh $(B)/bin/margay > $(B)/completion.zsh && install -m 644 $(B)/completion.zsh $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_margay
	scripts/gen-completion-fish $(B)/bin/margay > $(B)/completion.fish && install -m 644 $(B)/completion.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/margay.fish

	install -m 644 $(PLUGIN_CORE) $(DESTDIR)$(PREFIX)/lib/margay/
	rm -f $(DESTDIR)$(PREFIX)/lib/margay/libmargay-core.so* && cp -P $(SHARED_CORE) $(SHARED_CORE).* $(DESTDIR)$(PREFIX)/lib/margay/
	$(foreach d,$(STAMPED),install -d $(CORE_INCLUDE)/$(d) && install -m 644 $(wildcard src/$(d)/*.h src/$(d)/*.def) $(CORE_INCLUDE)/$(d)/ &&) :
	install -m 644 $(B)/gen/margay-stamp.h $(CORE_INCLUDE)/

deb: all ## make a Debian package of the installation in build/
	scripts/deb $(B)

lint: ## layout, sizes of functions and structs, layers, clang's warnings
	@scripts/check-style
	@scripts/check-layers
	@$(MAKE) --no-print-directory -s CC=clang B=build/lint all

format: ## clang-format the sources that differ from the last commit
	@scripts/deps format
	git diff --name-only HEAD -- '*.c' '*.h' | xargs -r clang-format -i

clean: ## remove everything built
	rm -rf build

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
