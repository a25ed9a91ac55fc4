# heed.  `make` builds the library and the program, `make test` proves them, `make demo` shows them,
# `make help` lists the rest.  Variants build beside each other in build/<flavour>/ and never need a
# clean:
#   make SAN=address,undefined   make SAN=thread   make REAL=double   make DEBUG=1   make CC=clang
#   make BLAS=openblas           make COVERAGE=1   (V=1 shows the commands)
# make MPI=1 also builds heed-mpi, which trains with several processes (Open MPI; MPI=mpich: MPICH).
# WERROR=1 makes warnings errors.  It changes no object and so has no folder of its own.

VERSION := 0.1.0
SOVERSION := 0
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
DESTDIR ?=
FUZZ_SECONDS ?= 60
ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := $(if $(findstring clang,$(CC)),clang++,g++)
endif
BLAS ?= blis
# The thread sanitizer understands neither OpenMP's barriers nor a threaded BLAS.
ifeq ($(SAN),thread)
override BLAS := reference
endif
# Empty on a machine that has no compiler yet; the targets below then install one and start make
# again.
MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)
SYSLIB := /usr/lib/$(MULTIARCH)
SYSINC := /usr/include/$(MULTIARCH)

# ---- flavour: everything that changes the objects names its own folder ----
comma := ,
FLAVOUR := $(if $(findstring clang,$(CC)),clang,gcc)
ifneq ($(BLAS),blis)
FLAVOUR := $(FLAVOUR)-$(BLAS)
endif
ifdef REAL
FLAVOUR := $(FLAVOUR)-$(REAL)
endif
ifdef SAN
FLAVOUR := $(FLAVOUR)-$(subst $(comma),+,$(SAN))
endif
ifdef DEBUG
FLAVOUR := $(FLAVOUR)-debug
endif
ifdef SYNTAX
FLAVOUR := $(FLAVOUR)-syntax
endif
ifdef COVERAGE
FLAVOUR := $(FLAVOUR)-coverage
endif
OUT := build/$(FLAVOUR)
DEFAULT := build/gcc

# ---- flags ----
# No -ffast-math: masks are -inf.  Contraction is what lets a*b+c be one instruction where the set
# has it.  Nothing is hidden by the compiler: the version script hides all that tests/abi.txt does
# not name, and -fno-semantic-interposition keeps calls inside the library direct.
# The sanitizers' checks make large kernels slow to optimise, and prove as much with less.
OPTIMISE := $(if $(SAN),-O1,-O3)
ifdef DEBUG
OPTIMISE := -O0 -g3
endif
# Branches are counted as they are written, so nothing is optimised but the kernels, without which
# the learning tests would take hours.
ifdef COVERAGE
OPTIMISE := -O0 --coverage
KERNEL_OPTIMISE := -O2
HEED_LDFLAGS += --coverage
endif
WARN := -Wall -Wextra -Wshadow -Wpointer-arith -Wvla -Wformat=2 -Wno-unknown-pragmas
HEED_CPPFLAGS := -Iinclude -D_GNU_SOURCE
# Builds that only prove things know their lines, for traces; where the variables are (-g) takes a
# third of the time to compile a kernel with its checks.
HEED_CFLAGS := $(if $(REAL)$(SAN),-g1,-g) $(OPTIMISE) $(WARN) -fPIC -fno-semantic-interposition \
               -ffp-contract=fast -fno-math-errno -fno-trapping-math
# What the language decides.  clang has the C++ half of its undefined-behaviour runtime only when
# it links as C++.
C_FLAGS := -std=c11 -Wstrict-prototypes -Wmissing-prototypes
CXX_FLAGS := -std=c++17
ifneq ($(findstring undefined,$(SAN)),)
CXX_FLAGS += $(if $(findstring clang,$(CC)),-fno-sanitize=vptr$(comma)function)
endif
OPENMP := -fopenmp
ifeq ($(REAL),double)
HEED_CPPFLAGS += -DHEED_DOUBLE
endif
ifdef SAN
HEED_CFLAGS += -fsanitize=$(SAN) -fno-omit-frame-pointer \
               $(if $(findstring undefined,$(SAN)),-fno-sanitize-recover=undefined)
HEED_LDFLAGS += -fsanitize=$(SAN)
endif
ifeq ($(SAN),thread)
OPENMP :=
endif
HEED_CFLAGS += $(OPENMP)
HEED_LDFLAGS += $(OPENMP)

# Which CBLAS; the openmp flavours, found again at run time whatever the system's alternatives say.
BLAS_FOLDER_blis := blis-openmp
BLAS_FOLDER_openblas := openblas-openmp
BLAS_FOLDER_reference := blas
BLAS_NAME_blis := blis
BLAS_NAME_openblas := openblas
BLAS_NAME_reference := blas
BLAS_DIR := $(SYSLIB)/$(BLAS_FOLDER_$(BLAS))
# BLAS_RPATH= leaves the flavour to the system's alternatives, as packages must.
BLAS_RPATH ?= -Wl,-rpath,$(BLAS_DIR)
BLAS_LIBS := -L$(BLAS_DIR) $(BLAS_RPATH) -l$(BLAS_NAME_$(BLAS))
BLAS_INCLUDE := $(addprefix -isystem ,$(wildcard $(SYSINC)/$(BLAS_FOLDER_$(BLAS))))
ifeq ($(BLAS_NAME_$(BLAS)),)
$(error BLAS is '$(BLAS)', expected blis, openblas or reference)
endif
# heed-mpi is the program with one more object; each MPI library has a folder of its own.
ifdef MPI
MPI_PACKAGE_openmpi := ompi-c
MPI_PACKAGE_mpich := mpich
MPI_NAME := $(if $(filter 1,$(MPI)),openmpi,$(MPI))
MPI_OUT := $(OUT)/$(MPI_NAME)
MPI_PACKAGE := $(MPI_PACKAGE_$(MPI_NAME))
ifeq ($(MPI_PACKAGE),)
$(error MPI is '$(MPI)', expected 1, openmpi or mpich)
endif
MPI_CFLAGS = $(patsubst -I%,-isystem %,$(shell pkg-config --cflags-only-I $(MPI_PACKAGE)))
MPI_LIBS = $(shell pkg-config --libs-only-L --libs-only-l $(MPI_PACKAGE))
PROGRAM_MPI := $(MPI_OUT)/heed-mpi
endif

LIBS := $(BLAS_LIBS) -lsentencepiece_train -lsentencepiece -lutf8proc -ljansson -lz -lstdc++ -lm \
        -lpthread -ldl

# One line for each thing made; V=1 shows the commands.
Q := $(if $(V),,@)
say = $(if $(V)$(findstring s,$(firstword -$(MAKEFLAGS))),,@printf '  %-4s %s\n' '$(1)' '$@')

COMPILE = $(CC) $(HEED_CPPFLAGS) $(CPPFLAGS) $(C_FLAGS) $(HEED_CFLAGS) $(CFLAGS) -MMD -MP
COMPILE_CXX = $(CXX) $(HEED_CPPFLAGS) $(CPPFLAGS) $(HEED_CFLAGS) $(CXX_FLAGS) $(CXXFLAGS) -MMD -MP
LINK = $(CC) $(HEED_LDFLAGS) $(LDFLAGS)
# What follows the flags and is not in their stamp.  SYNTAX=1 only looks for mistakes and warnings:
# its objects are empty.
TO_OBJECT = $(if $(WERROR),-Werror) $(if $(SYNTAX),-fsyntax-only) -c -o $@ $< $(if $(SYNTAX),&& : >$@)

# ---- instruction sets: kernels are compiled once for each.  To add a set:
# src/kernel/kernels.h, HEED_ISA_LIST. ----
ISAS := baseline avx2 avx512
ISA_FLAGS_baseline :=
ISA_FLAGS_avx2 := -mavx2 -mfma
ISA_FLAGS_avx512 := $(ISA_FLAGS_avx2) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni \
                    -mprefer-vector-width=256

# ---- what there is ----
# Sources in src/kernel that are the same for every set; all others there are compiled per set.
KERNEL_ONCE := src/kernel/dispatch.c src/kernel/blas.c src/kernel/product.c src/kernel/machine.c \
               src/kernel/panels.c
KERNEL_EACH := $(filter-out $(KERNEL_ONCE),$(wildcard src/kernel/*.c))
# What decodes pictures is a library of its own, so that libheed.so needs neither libpng nor libjpeg.
FILES_SRC := $(wildcard src/image/*.c src/see/*.c)
FILES_HEADERS := include/heed/image.h include/heed/see.h include/heed/vit.h
FILES_OBJ := $(FILES_SRC:%.c=$(OUT)/%.o)
FILES_LIBS := -lpng -ljpeg
# What knows MPI is linked into heed-mpi alone, in the place of alone.c.
MPI_SRC := src/dist/mpi.c
LIB_SRC := $(filter-out $(KERNEL_EACH) $(FILES_SRC) $(MPI_SRC),$(wildcard src/*/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(OUT)/%.o) $(patsubst %.cc,$(OUT)/%.o,$(wildcard src/*/*.cc)) \
           $(foreach isa,$(ISAS),$(KERNEL_EACH:%.c=$(OUT)/%.$(isa).o))
CLI_OBJ := $(patsubst %.c,$(OUT)/%.o,$(wildcard cli/*.c bench/*.c))
LAB_OBJ := $(patsubst %.c,$(OUT)/%.o,$(wildcard labs/*.c))
TESTS := $(patsubst tests/%.c,$(OUT)/tests/%,$(wildcard tests/test_*.c))
FUZZERS := $(patsubst tests/%.c,$(OUT)/tests/%,$(wildcard tests/fuzz/fuzz_*.c))
EXAMPLES := $(patsubst %.c,$(OUT)/%,$(wildcard examples/*.c))
ifeq ($(REAL),double)
EXAMPLES :=
endif
PROGRAM := $(if $(wildcard cli/main.c),$(OUT)/heed)
HEADERS := $(wildcard include/heed/*.h)
COMMANDS := $(shell sed -n 's/^ *X(\([a-z]*\)).*/\1/p' cli/command.h)
KINDS := $(shell sed -n '/define TRAIN_OTHERS_LIST/,/^$$/s/.* X(\([a-z]*\)).*/\1/p' cli/train_kinds.h)
MAN := heed.1 $(COMMANDS:%=heed-%.1) $(KINDS:%=heed-train-%.1)
MODELS := $(wildcard models/*)
SO := libheed.so.$(VERSION)
FILES_SO := libheed-files.so.$(VERSION)
# The double and the sanitized builds prove things; they are not linked by others.  The examples are
# written for the installed library, which computes in float.
ifeq ($(REAL)$(SAN),)
SHARED := $(OUT)/libheed.so $(OUT)/heed.pc $(OUT)/libheed-files.so $(OUT)/heed-files.pc
endif

# Tests that are not repeated in a flavour, and why.
# double: the learning tests and what compares bits or error bounds of float only cost time there, as
# do hundreds of trainings with one failing call each and forecasts of two seconds, which go their way
# whatever the numbers are.
# sanitized, valgrind: the learning tests are the slow ones; what they run, others run too.  The same
# goes for the hundreds of kills and the four hundred lines.
# threads, valgrind: SentencePiece copies a long line of unknown characters once for each of them,
# which takes for ever where every byte of a copy is looked at; and hundreds of trainings with one
# failing call each take as long.
NOT_DOUBLE := test_learning test_threads test_crash test_train_kill test_task_kill test_batching \
              test_train_files test_train_memory test_set_failures test_loop_edges
NOT_SAN := test_learning test_crash test_train_kill test_task_kill test_batching
NOT_SLOW := $(NOT_SAN) test_any_line test_train_files test_set_failures

.PHONY: all build tests fuzzers objects demo test coverage lint format deps bench bench-peers \
        install uninstall docs deb clean help FORCE

# demo, test, lint and deps install what they need, then start make again: the first reading may
# have been without a compiler.  Plain make and install only name what is missing.
JOBS = --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
DEPS = $(if $(findstring clang,$(CC)),clang $(if $(SAN),clang-rt)) \
       $(filter openblas reference,$(BLAS)) $(MPI_NAME)

all: ## the library, the program and the examples (what plain `make` does); installs nothing
	@tools/deps --check build $(DEPS)
	@$(MAKE) $(JOBS) build

build: $(OUT)/libheed.a $(OUT)/libheed-files.a $(SHARED) $(PROGRAM) $(PROGRAM_MPI) $(EXAMPLES)
tests: build $(TESTS) ## the test programs, in build/<flavour>/tests
fuzzers: $(FUZZERS)
objects: $(LIB_OBJ) $(FILES_OBJ) $(CLI_OBJ) $(LAB_OBJ) $(addsuffix .o,$(TESTS) $(FUZZERS) $(EXAMPLES))

# build/heed and build/examples are always the default flavour.
ifeq ($(OUT),$(DEFAULT))
build: $(if $(PROGRAM),build/heed) $(if $(EXAMPLES),build/examples)
build/heed: $(OUT)/heed
	@ln -sfn $(FLAVOUR)/heed $@
ifdef MPI
build: build/heed-mpi
build/heed-mpi: $(PROGRAM_MPI)
	@ln -sfn $(FLAVOUR)/$(MPI_NAME)/heed-mpi $@
endif
build/examples: $(EXAMPLES)
	@ln -sfn $(FLAVOUR)/examples $@
endif

# ---- rules ----
# A file of flags that changes only when they do: whatever was made with others is made again.
define stamp
$(1): FORCE
	@mkdir -p $$(@D)
	@printf '%s\n' '$$(subst ','\'',$(2))' | cmp -s - $$@ || \
	    printf '%s\n' '$$(subst ','\'',$(2))' >$$@
endef
$(eval $(call stamp,$(OUT)/flags,$$(COMPILE) $$(COMPILE_CXX) $$(INTERNAL)))
$(eval $(call stamp,$(OUT)/flags.link,$$(LINK) $$(LIBS) $$(VERSION) $$(LIB_OBJ) $$(FILES_OBJ) $$(FILES_LIBS) $$(CLI_OBJ) $$(LAB_OBJ)))
$(eval $(call stamp,$(OUT)/flags.pc,$$(PREFIX) $$(LIBDIR) $$(VERSION) $$(LIBS) $$(OPENMP) $$(FILES_LIBS)))

$(OUT)/libheed.a: $(LIB_OBJ) $(OUT)/flags.link
	$(call say,ar)
	@rm -f $@
	$(Q)$(AR) rcs $@ $(LIB_OBJ)

$(OUT)/libheed-files.a: $(FILES_OBJ) $(OUT)/flags.link
	$(call say,ar)
	@rm -f $@
	$(Q)$(AR) rcs $@ $(FILES_OBJ)

$(OUT)/libheed.map: tests/abi.txt tools/make-version-script
	@mkdir -p $(@D)
	$(Q)tools/make-version-script HEED_$(SOVERSION) tests/abi.txt >$@

$(OUT)/$(SO): $(LIB_OBJ) $(OUT)/libheed.map $(OUT)/flags.link
	$(call say,link)
	$(Q)$(LINK) -shared -Wl,-soname,libheed.so.$(SOVERSION) -Wl,--version-script,$(OUT)/libheed.map \
	    -o $@ $(LIB_OBJ) $(LIBS)

$(OUT)/libheed.so: $(OUT)/$(SO)
	@ln -sf $(SO) $(OUT)/libheed.so.$(SOVERSION)
	@ln -sf libheed.so.$(SOVERSION) $@

# Functions that libheed.so hides come out of libheed.a, and are hidden here, too.
$(OUT)/libheed-files.map: tests/abi-files.txt tools/make-version-script
	@mkdir -p $(@D)
	$(Q)tools/make-version-script HEED_FILES_$(SOVERSION) tests/abi-files.txt >$@

$(OUT)/$(FILES_SO): $(FILES_OBJ) $(OUT)/libheed-files.map $(OUT)/libheed.a $(OUT)/libheed.so
	$(call say,link)
	$(Q)$(LINK) -shared -Wl,-soname,libheed-files.so.$(SOVERSION) \
	    -Wl,--version-script,$(OUT)/libheed-files.map -o $@ $(FILES_OBJ) $(OUT)/libheed.so \
	    $(OUT)/libheed.a $(FILES_LIBS) $(LIBS)

$(OUT)/libheed-files.so: $(OUT)/$(FILES_SO)
	@ln -sf $(FILES_SO) $(OUT)/libheed-files.so.$(SOVERSION)
	@ln -sf libheed-files.so.$(SOVERSION) $@

FILL_PC = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' \
              -e 's|@PRIVATE@|$(LIBS) $(OPENMP)|' -e 's|@FILES@|$(FILES_LIBS)|'
$(OUT)/%.pc: %.pc.in $(OUT)/flags.pc
	$(call say,make)
	$(Q)$(FILL_PC) $< >$@

# The labs: in the program, and within reach of the tests.
$(OUT)/labs.a: $(LAB_OBJ) $(OUT)/flags.link
	$(call say,ar)
	@rm -f $@
	$(Q)$(AR) rcs $@ $(LAB_OBJ)

$(OUT)/heed: $(CLI_OBJ) $(OUT)/labs.a $(OUT)/libheed-files.a $(OUT)/libheed.a $(OUT)/flags.link
	$(call say,link)
	$(Q)$(LINK) -o $@ $(CLI_OBJ) $(OUT)/labs.a $(OUT)/libheed-files.a $(OUT)/libheed.a \
	    $(FILES_LIBS) $(LIBS)

# What it has of mpi.o it does not take out of libheed.a.
ifdef MPI
$(MPI_OUT)/mpi.o: $(MPI_SRC) $(OUT)/flags
	@mkdir -p $(@D)
	$(call say,cc)
	$(Q)$(COMPILE) $(INTERNAL) $(MPI_CFLAGS) $(TO_OBJECT)

$(PROGRAM_MPI): $(CLI_OBJ) $(MPI_OUT)/mpi.o $(OUT)/labs.a $(OUT)/libheed-files.a $(OUT)/libheed.a $(OUT)/flags.link
	$(call say,link)
	$(Q)$(LINK) -o $@ $(CLI_OBJ) $(MPI_OUT)/mpi.o $(OUT)/labs.a $(OUT)/libheed-files.a $(OUT)/libheed.a \
	    $(FILES_LIBS) $(LIBS) $(MPI_LIBS)
endif

# All of it, with what the libraries hide, for the tests: so the linker reads it once a flavour and
# not once a test.
$(OUT)/libheed-tests.so: $(OUT)/labs.a $(OUT)/libheed-files.a $(OUT)/libheed.a
	$(call say,link)
	$(Q)$(LINK) -shared -Wl,-soname,$(@F) -o $@ -Wl,--whole-archive $^ -Wl,--no-whole-archive $(FILES_LIBS) $(LIBS)

$(OUT)/tests/test_%: $(OUT)/tests/test_%.o $(OUT)/libheed-tests.so
	$(call say,link)
	$(Q)$(LINK) -Wl,-rpath,'$$ORIGIN/..' -o $@ $^ -lcmocka $(FILES_LIBS) $(LIBS)

$(OUT)/tests/fuzz/fuzz_%: $(OUT)/tests/fuzz/fuzz_%.o $(OUT)/libheed-files.a $(OUT)/libheed.a
	$(call say,link)
	$(Q)$(LINK) -fsanitize=fuzzer -o $@ $^ $(FILES_LIBS) $(LIBS)

$(OUT)/examples/%: $(OUT)/examples/%.o $(OUT)/libheed.a
	$(call say,link)
	$(Q)$(LINK) -o $@ $^ $(LIBS)

define isa_rule
$(OUT)/src/kernel/%.$(1).o: src/kernel/%.c $(OUT)/flags
	@mkdir -p $$(@D)
	$$(call say,cc)
	$(Q)$(COMPILE) $(KERNEL_OPTIMISE) -Isrc $(ISA_FLAGS_$(1)) -DHEED_ISA=$(1) $$(TO_OBJECT)
endef
$(foreach isa,$(ISAS),$(eval $(call isa_rule,$(isa))))

# cli, labs and examples see the public headers only; cli also bench/bench.h and labs/lab.h, the
# tests all.
$(OUT)/cli/%.o: private INTERNAL := -I.
# A test runs for seconds: it takes longer to optimise than it saves.
$(OUT)/tests/%.o: private INTERNAL += -I. $(if $(DEBUG)$(COVERAGE),,-O1)
$(OUT)/labs/%.o $(OUT)/examples/%.o: private INTERNAL :=
INTERNAL = -Isrc -I$(OUT)/src -DHEED_VERSION_TEXT='"$(VERSION)"' $(BLAS_INCLUDE)
$(OUT)/%.o: %.c $(OUT)/flags
	@mkdir -p $(@D)
	$(call say,cc)
	$(Q)$(COMPILE) $(INTERNAL) $(TO_OBJECT)

# A page as a C string.
$(OUT)/%.html.inc: %.html
	@mkdir -p $(@D)
	$(Q)sed -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' $< >$@
$(OUT)/src/show/attention_html.o: $(OUT)/src/show/page.html.inc

# The one C++ file: SentencePiece has no C interface.
$(OUT)/%.o: %.cc $(OUT)/flags
	@mkdir -p $(@D)
	$(call say,c++)
	$(Q)$(COMPILE_CXX) -Isrc $(TO_OBJECT)

-include $(shell find $(OUT) -name '*.d' 2>/dev/null)
.SECONDARY:

# ---- for people ----
demo: ## translate, look inside; train a small translator, score it
	@tools/deps build
	@$(MAKE) $(JOBS) build
	@tools/demo build/heed build/examples/number_words build/demo

# In one flavour, the test programs except those named.
some_tests = $(patsubst tests/%.c,build/$(1)/tests/%,\
                 $(filter-out $(2:%=tests/%.c),$(wildcard tests/test_*.c)))
SAN_SMALL := address,undefined

# The test programs of one flavour, made without a warning: $(call make_tests,REAL=double).
make_tests = $(MAKE) $(JOBS) -s WERROR=1 $(1) tests

# Each MPI library that is there.
MPI_THERE = $(shell for mpi in openmpi mpich; do tools/deps --check $$mpi 2>/dev/null && echo $$mpi; done)

test: ## everything that must hold: default build, double, sanitized, installed; under ten minutes
	@tools/deps build test
	@$(make_tests)
	@set -e; for mpi in $(MPI_THERE); do $(call make_tests,MPI=$$mpi); done
	@$(call make_tests,REAL=double)
	@$(call make_tests,SAN=$(SAN_SMALL))
	@tools/run-tests $(call some_tests,gcc) $(wildcard tests/*.sh tests/install/*.sh) \
	    $(call some_tests,gcc-double,$(NOT_DOUBLE)) \
	    $(call some_tests,gcc-address+undefined,$(NOT_SAN))

lint: ## format, names, include order, forbidden calls, exported names; warnings of gcc and clang
	@tools/deps build test clang lint
	@tools/lint/all
	@$(MAKE) $(JOBS) -s CC=clang SYNTAX=1 WERROR=1 objects
	@$(make_tests)

COVERED := build/gcc-coverage
coverage: ## lines and branches that the tests reach, by folder; WHERE=src/io/ lists what they do not
	@tools/deps build test
	@$(MAKE) $(JOBS) -s COVERAGE=1 tests
	@find $(COVERED) -name '*.gcda' -delete
	@HEED=$(COVERED)/heed HEED_TEST_SECONDS=3600 tools/run-tests $(call some_tests,gcc-coverage,$(NOT_SAN)) \
	    $(filter-out tests/learn_%,$(wildcard tests/*.sh))
	@tools/coverage $(COVERED) $(WHERE)

# ---- what takes long, in parts that run one by one; each closes with its own counts ----
LONG := check-isa check-blas check-clang check-fuzz check-labs check-threads check-valgrind check-deb check-from \
        check-mpi
.PHONY: check-long $(LONG)
run_long := HEED_TEST_SECONDS=3600 tools/run-tests

check-long: ## all that takes long; each part is a target of its own:
	@failed=; for part in $(LONG); do \
	    echo "make $$part"; $(MAKE) --no-print-directory $$part || failed="$$failed $$part"; \
	done; [ -z "$$failed" ] || { echo "failed:$$failed" >&2; exit 1; }

check-isa: ## the tests with the kernels of each smaller instruction set
	@tools/deps build test
	@$(make_tests)
	@$(run_long) HEED_ISA=baseline $(call some_tests,gcc) HEED_ISA=avx2 $(call some_tests,gcc)

check-blas: ## the tests with OpenBLAS
	@tools/deps build test openblas
	@$(call make_tests,BLAS=openblas)
	@$(run_long) $(call some_tests,gcc-openblas)

check-clang: ## the tests as clang compiles them
	@tools/deps build test clang
	@$(call make_tests,CC=clang)
	@$(run_long) $(call some_tests,clang)

check-fuzz: ## each fuzzer for FUZZ_SECONDS (60); 100,000 lines of anything to translate
	@tools/deps build test clang clang-rt
	@$(make_tests)
	@$(call make_tests,SAN=$(SAN_SMALL))
	@$(MAKE) $(JOBS) -s WERROR=1 CC=clang SAN=fuzzer-no-link,$(SAN_SMALL) fuzzers
	@FUZZ_SECONDS=$(FUZZ_SECONDS) $(run_long) HEED_TEST_LINES=100000 \
	    build/gcc-address+undefined/tests/test_any_line build/gcc/tests/test_any_line \
	    HEED_TEST_LINES= $(patsubst %,--fuzz %,$(patsubst tests/%.c,\
	        build/clang-fuzzer-no-link+address+undefined/tests/%,$(wildcard tests/fuzz/fuzz_*.c)))

# Presets that meet their targets in ten minutes of one core, the longest first; docs/LAB.md has the
# others.
LAB_PRESETS := ntm-ngrams ntm-copy-lstm pointer-hull ntm-copy pointer-tsp ntm-recall pointer-sort
check-labs: ## presets of the labs meet their targets
	@tools/deps build
	@$(MAKE) $(JOBS) -s build
	@$(run_long) $(foreach preset,$(LAB_PRESETS),LAB=$(preset) tests/long/lab_preset.sh)

check-threads: ## the tests under the thread sanitizer
	@tools/deps build test reference
	@$(call make_tests,SAN=thread)
	@$(run_long) $(call some_tests,gcc-reference-thread,$(NOT_SLOW))

VALGRIND := valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite \
            --errors-for-leak-kinds=definite --suppressions=tools/valgrind.supp
check-valgrind: ## the tests under valgrind
	@tools/deps build test valgrind
	@$(make_tests)
	@$(run_long) --under '$(VALGRIND)' $(call some_tests,gcc,$(NOT_SLOW))

check-from: ## 200 pairs with 20 new terms teach the model that comes with heed, and it forgets little
	@tools/deps build test
	@$(MAKE) $(JOBS) -s build
	@$(run_long) tests/long/from_terms.sh

check-mpi: ## training with several processes: a hundred kills of ranks; two hosts with slow cables (root)
	@tools/deps build test openmpi mpich
	@$(make_tests)
	@set -e; for mpi in openmpi mpich; do $(call make_tests,MPI=$$mpi); done
	@$(run_long) HEED_KILLS=50 tests/mpi_kill.sh tests/long/mpi_hosts.sh

check-deb: ## the Debian packages, installed and tried in a bare Debian 12
	@$(MAKE) --no-print-directory deb
	@$(run_long) tests/long/deb.sh

format: ## let clang-format have its way
	@tools/deps lint
	git ls-files '*.c' '*.h' '*.cc' | xargs clang-format -i

deps: ## install what building, testing and linting need (Debian packages)
	@tools/deps build test clang lint

bench: ## measure the kernels against what this machine gives
	@tools/deps build
	@$(MAKE) $(JOBS) build
	@build/heed bench kernels

bench-peers: ## the same training steps in heed and in PyTorch, alternately: make bench-peers DATA=dir
	@tools/deps build openblas peers
	@$(MAKE) $(JOBS) build
	@bench/peers/run build/heed

# Headers, the libraries, their .pc files, the program, its page and its models; DESTDIR stages, PREFIX is for good.
install: ## into PREFIX (/usr/local), staged under DESTDIR
	$(if $(REAL)$(SAN),$(error the double and the sanitized builds are not for installing))
	@tools/deps --check build $(DEPS)
	@$(MAKE) $(JOBS) build
	install -d '$(DESTDIR)$(PREFIX)/include/heed' '$(DESTDIR)$(LIBDIR)/pkgconfig'
	install -m 644 $(HEADERS) '$(DESTDIR)$(PREFIX)/include/heed'
	install -m 644 $(OUT)/libheed.a $(OUT)/$(SO) $(OUT)/libheed-files.a $(OUT)/$(FILES_SO) '$(DESTDIR)$(LIBDIR)'
	ln -sf $(FILES_SO) '$(DESTDIR)$(LIBDIR)/libheed-files.so.$(SOVERSION)'
	ln -sf libheed-files.so.$(SOVERSION) '$(DESTDIR)$(LIBDIR)/libheed-files.so'
	ln -sf $(SO) '$(DESTDIR)$(LIBDIR)/libheed.so.$(SOVERSION)'
	ln -sf libheed.so.$(SOVERSION) '$(DESTDIR)$(LIBDIR)/libheed.so'
	install -m 644 $(OUT)/heed.pc $(OUT)/heed-files.pc '$(DESTDIR)$(LIBDIR)/pkgconfig'
ifneq ($(PROGRAM),)
	install -d '$(DESTDIR)$(PREFIX)/bin'
	install $(PROGRAM) $(PROGRAM_MPI) '$(DESTDIR)$(PREFIX)/bin'
endif
	install -d '$(DESTDIR)$(PREFIX)/share/man/man1' \
	    '$(DESTDIR)$(PREFIX)/share/bash-completion/completions' \
	    '$(DESTDIR)$(PREFIX)/share/zsh/site-functions'
	set -e; $(PROGRAM) help --man >'$(DESTDIR)$(PREFIX)/share/man/man1/heed.1'; \
	for command in $(COMMANDS); do \
	    $(PROGRAM) help --man $$command >'$(DESTDIR)$(PREFIX)/share/man/man1'/heed-$$command.1; \
	done; \
	for kind in $(KINDS); do \
	    $(PROGRAM) help --man train $$kind >'$(DESTDIR)$(PREFIX)/share/man/man1'/heed-train-$$kind.1; \
	done; \
	$(if $(PROGRAM_MPI),ln -sf heed.1 '$(DESTDIR)$(PREFIX)/share/man/man1/heed-mpi.1')
	$(PROGRAM) help --completion bash >'$(DESTDIR)$(PREFIX)/share/bash-completion/completions/heed'; \
	$(PROGRAM) help --completion zsh >'$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_heed'
	set -e; for model in $(MODELS); do \
	    to='$(DESTDIR)$(PREFIX)/share/heed'/$$model; \
	    install -d "$$to"; install -m 644 $$model/* "$$to"; \
	done
	@[ -n '$(DESTDIR)' ] || [ "$$(id -u)" != 0 ] || ldconfig

uninstall: ## remove what install brought
	rm -rf '$(DESTDIR)$(PREFIX)/include/heed' $(MODELS:%='$(DESTDIR)$(PREFIX)/share/heed/%')
	rm -f '$(DESTDIR)$(LIBDIR)'/libheed.a '$(DESTDIR)$(LIBDIR)'/libheed.so* \
	    '$(DESTDIR)$(LIBDIR)'/libheed-files.a '$(DESTDIR)$(LIBDIR)'/libheed-files.so* \
	    '$(DESTDIR)$(LIBDIR)/pkgconfig/heed.pc' '$(DESTDIR)$(LIBDIR)/pkgconfig/heed-files.pc' '$(DESTDIR)$(PREFIX)/bin/heed' '$(DESTDIR)$(PREFIX)/bin/heed-mpi' \
	    $(MAN:%='$(DESTDIR)$(PREFIX)/share/man/man1/%') '$(DESTDIR)$(PREFIX)/share/man/man1/heed-mpi.1' \
	    '$(DESTDIR)$(PREFIX)/share/bash-completion/completions/heed' \
	    '$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_heed'

docs: ## the public headers as pages: build/docs/html (Doxygen)
	@tools/deps docs
	@mkdir -p build/docs
	@doxygen Doxyfile

# Built from what git knows, in a folder of its own: packages land in build/deb.
deb: ## Debian packages heed, heed-mpi, libheed0 and libheed-dev, checked by lintian
	@tools/deps build openmpi deb
	@rm -rf build/deb && mkdir -p build/deb/heed-$(VERSION)
	@git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t build/deb/heed-$(VERSION)
	cd build/deb/heed-$(VERSION) && dpkg-buildpackage -b -uc -us >../build.log 2>&1 || { tail -40 ../build.log; exit 1; }
	lintian --fail-on error build/deb/*.changes
	@ls build/deb/*.deb

clean: ## remove build/
	rm -rf build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 23
